"""The files of an agent in a turn: shown whole where they fit, else searched like a knowledge base."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.placed_blocks import CLASSIC
from backend.knowledge.domain.file_indexes import FileIndex, FileIndexState, IndexedFile, file_index_of_agent
from backend.knowledge.domain.knowledge import Document
from backend.openai_api.domain.presets import Preset
from backend.prompt.domain.document_numbers import first_shown_number, next_number
from backend.turns.ports.files_by_id import FilesOfAgents
from shared.errors import NotFound
from shared.models.events import ModelCard
from shared.models.execution import AccessMode, KnowledgeBaseRef
from shared.prompts.documents import NumberedDocument
from shared.prompts.project_files import ListedFile, list_searched, render_whole_files
from shared.tokens import estimate_tokens

SHOWN_PERCENT = 60
"""Percent of the window less the reserved output; a conversation still has room beside files that take less."""

MAX_KEPT_CHARACTERS = 8_000_000
"""How much text of agents' files a process keeps, so that it is not read from the database in each turn."""

_STATES = {
    FileIndexState.BEING_READ: "its text is still being extracted",
    FileIndexState.DELETED: "deleted",
}


class ProjectInTurn(NamedTuple):
    """What a turn has of its agent's files: the text of the message, and the base in which they are searched."""

    text: str = ""
    base: KnowledgeBaseRef | None = None


NO_PROJECT = ProjectInTurn()


class ProjectFiles:
    """Looks the files of agents up, anew in every turn."""

    def __init__(self, files: FilesOfAgents | None) -> None:
        self._files = files
        self._kept = _KeptTexts()

    async def in_turn(self, tenant: str, preset: Preset | None, card: ModelCard, log: Sequence[Entry]) -> ProjectInTurn:
        """Return what a turn of a conversation with this log has of the files of an agent.

        The bytes are the same as long as files, their states and what the model's window holds are. What the log shows
        already keeps its numbers; otherwise numbers go on behind the highest of the conversation.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        if self._files is None or preset is None or not preset.file_ids:
            return NO_PROJECT
        file_index = file_index_of_agent(tenant, preset.id)
        files = await self._files.files(file_index, preset.file_ids)
        limit_tokens = card.input_budget_tokens * SHOWN_PERCENT // 100
        if sum(file.tokens for file in files) < limit_tokens:
            texts = await self._texts(files)
            # Under `classic` they stand in no log: results of tools are numbered behind them from the beginning.
            numbered = () if preset.placement == CLASSIC else log
            text = await asyncio.to_thread(_render, files, texts, numbered)
            if await asyncio.to_thread(estimate_tokens, text) < limit_tokens:
                return ProjectInTurn(text)
        return _offer_search(file_index, preset, files)

    async def _texts(self, files: Sequence[IndexedFile]) -> dict[str, str]:
        """Return the texts of those files that have one, by their ids."""
        texts = dict[str, str]()
        for file in files:
            if file.document is not None:
                text = self._kept.get(file.document.id)
                text = await self._read(file.document) if text is None else text
                if text is not None:
                    texts[file.file_id] = text
        return texts

    async def _read(self, document: Document) -> str | None:
        if self._files is None:
            return None
        try:
            text = await self._files.text(document)
        except NotFound:  # deleted since it was looked up
            return None
        self._kept.add(document.id, text)
        return text


class _KeptTexts:
    """The texts of documents that were used last; a document in a file index never changes."""

    def __init__(self) -> None:
        self._texts = OrderedDict[str, str]()
        self._characters = 0

    def get(self, document_id: str) -> str | None:
        if document_id in self._texts:
            self._texts.move_to_end(document_id)
        return self._texts.get(document_id)

    def add(self, document_id: str, text: str) -> None:
        if document_id in self._texts:
            return
        self._texts[document_id] = text
        self._characters += len(text)
        while self._characters > MAX_KEPT_CHARACTERS:
            self._characters -= len(self._texts.popitem(last=False)[1])


def _render(files: Sequence[IndexedFile], texts: dict[str, str], log: Sequence[Entry]) -> str:
    """Render the files with the numbers that the log shows them under, or with the next ones."""
    others = [_list_file(file) for file in files if file.file_id not in texts]

    def render(first: int) -> str:
        named = [file for file in files if file.file_id in texts]
        documents = [
            NumberedDocument(number, file.name, file.file_id, {}, texts[file.file_id])
            for number, file in enumerate(named, first)
        ]
        return render_whole_files(documents, others)

    before = first_shown_number(log)
    if before is None:
        return render(next_number(log))
    text = render(before.number)
    return text if before.text.endswith(text) else render(next_number(log))


def _offer_search(file_index: FileIndex, preset: Preset, files: Sequence[IndexedFile]) -> ProjectInTurn:
    base = KnowledgeBaseRef(id=file_index.id, name=f"Files of {preset.name}", access_mode=AccessMode.FULL)
    return ProjectInTurn(list_searched(file_index.id, [_list_file(file) for file in files]), base)


def _list_file(file: IndexedFile) -> ListedFile:
    reason = file.error.message if file.error is not None else "it has no text that can be read"
    state = "" if file.state is FileIndexState.READ else _STATES.get(file.state, reason)
    return ListedFile(file.name, file.file_id, file.tokens, state)
