"""The tool `knowledge_base_read_document`."""

from typing import Annotated

from pydantic import BaseModel, Field

from chat_shell.knowledge.ports import Knowledge
from chat_shell.knowledge.services.turn_knowledge import (
    WHOLE_BASE_WINDOW_SHARE,
    NonBlankText,
    bases_in_scope,
    credentials_of,
)
from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.tools.domain.tool_calls import validate_arguments
from chat_shell.tools.ports.tools import ToolContext
from shared.models.events import ModelCard
from shared.models.knowledge_api import KnowledgeDocument, KnowledgePage
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import knowledge_tools as definitions
from shared.prompts.tool_results import cut_to

MIN_PAGE_CHARACTERS = 2_000
MAX_PAGE_CHARACTERS = 20_000


class _ReadArguments(BaseModel):
    document: NonBlankText
    offset: Annotated[int, Field(ge=0)] = 0


class KnowledgeBaseReadDocument:
    """Read a document page by page."""

    definition = definitions.READ_DOCUMENT
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Read one page of a document of the bound bases."""
        wanted = validate_arguments(_ReadArguments, arguments)
        base_ids = bases_in_scope(None, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        named = _find_matching(wanted.document, await self._knowledge.list_documents(credentials_of(context), base_ids))
        if len(named) == 0:
            return ToolAnswer(text=texts.NO_SUCH_DOCUMENT, failed=True)
        if len(named) > 1:
            file_ids = ", ".join(document.file_id for document in named)
            return ToolAnswer(text=texts.SEVERAL_SUCH_DOCUMENTS + file_ids, failed=True)
        page = await self._knowledge.read_document(
            credentials_of(context), named[0].file_id, offset=wanted.offset, limit=page_characters(context.card)
        )
        return ToolAnswer(documents=(document_of_page(page, context.result_tokens),))


def _find_matching(wanted: str, documents: tuple[KnowledgeDocument, ...]) -> tuple[KnowledgeDocument, ...]:
    """Return the documents with this id; else those with this title; else those whose title differs in case only."""
    by_id = tuple(document for document in documents if document.file_id == wanted)
    by_title = tuple(document for document in documents if document.filename == wanted)
    folded = wanted.casefold()
    return by_id or by_title or tuple(document for document in documents if document.filename.casefold() == folded)


def page_characters(card: ModelCard) -> int:
    """Return the length of a page: at most a tenth of the window, even where every character is a token."""
    return min(MAX_PAGE_CHARACTERS, max(MIN_PAGE_CHARACTERS, card.context_window_tokens // WHOLE_BASE_WINDOW_SHARE))


def document_of_page(page: KnowledgePage, result_tokens: int) -> FoundDocument:
    """Return a page as a model sees it: it fits a tool's result, and the next one begins where it ends."""
    text = cut_to(page.text, result_tokens * 3 // 4)
    is_whole = len(text) == len(page.text)
    return FoundDocument(
        file_id=page.file_id,
        title=page.filename,
        metadata={
            "offset": page.offset,
            "next_offset": page.next_offset if is_whole else page.offset + len(text),
            "total_characters": page.total_characters,
        },
        content=text,
    )
