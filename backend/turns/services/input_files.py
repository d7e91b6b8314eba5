"""Reading the files in the input of a turn, before the turn starts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backend.conversations.domain.attached_files import unread_files, with_files
from backend.conversations.domain.turn_input import ParsedInput
from backend.foundation.services.steps import in_steps
from backend.identity.domain import Caller
from backend.knowledge.domain.chunking import joined_text, readable_text
from backend.knowledge.domain.excerpts import best_chunks
from backend.knowledge.domain.knowledge import Chunk
from backend.knowledge.domain.media_types import media_type_of
from backend.knowledge.ports.knowledge import DocumentReader, ReadableFile
from backend.turns.domain.file_parts import GivenFile, bytes_given, without_bytes_in_steps
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.ports.files_by_id import FileBytes, FilesById
from shared.errors import InvalidRequest, NotFound, UnsupportedValue
from shared.models.events import ModelCard
from shared.models.messages import Content, HistoryMessage, ToolMessage, UserMessage, texts_in
from shared.prompts.attached_files import GAP, attached_file
from shared.tokens import estimate_tokens

WINDOW_SHARE = 4
"""The files of one message take at most a quarter of the model's window."""

MARKS_TOKENS = 40
"""More than the hashes in the marks around a file take."""


@dataclass(frozen=True)
class FileText:
    """A file as text, the tokens of its whole block, and the pieces that it is searched by.

    Of a file that is longer than all files of a message may be, the text is empty: nobody asks for more than pieces.
    """

    name: str
    text: str
    tokens: int
    chunks: Sequence[Chunk]


@dataclass(frozen=True)
class FilesOfRequest:
    """The files of one request by their digests, and what was read of them."""

    files: Mapping[str, GivenFile] = field(default_factory=dict[str, GivenFile])
    read: dict[str, FileText] = field(default_factory=dict[str, FileText])


class _Reading(NamedTuple):
    """Who gives files, which ones, and how many tokens those of one message may take."""

    caller: Caller
    given: FilesOfRequest
    budget_tokens: int


class InputFiles:
    """Puts the texts of files in the places of the files; nothing that was recognised as seen is read again."""

    def __init__(self, documents: DocumentReader, stored: FilesById | None) -> None:
        self._documents = documents
        self._stored = stored

    async def separated(self, request: TurnRequest) -> tuple[TurnRequest, FilesOfRequest]:
        """Return the request with hashes in the places of its files, and the files.

        Raises:
            InvalidRequest: there are too many files, or one has neither bytes nor an id; `param` names it.
        """
        if isinstance(request.input, str):
            return request, FilesOfRequest()
        found = await in_steps(without_bytes_in_steps(request.input))
        if not found.files:
            return request, FilesOfRequest()
        return request.model_copy(update={"input": found.items}), FilesOfRequest(found.files)

    async def put_into(self, caller: Caller, read: ParsedInput, given: FilesOfRequest, card: ModelCard) -> ParsedInput:
        """Return an input whose messages hold the texts of their files.

        Raises:
            InvalidRequest: a file cannot be read; `param` names it.
            Unavailable: too many files are waiting to be read. Retryable.
        """
        reading = _Reading(caller, given, card.context_window_tokens // WINDOW_SHARE)
        history = [await self._message(reading, message) for message in read.history]
        current = read.current and await self._content(reading, read.current)
        return read.model_copy(update={"history": tuple(history), "current": current})

    async def _message(self, reading: "_Reading", message: HistoryMessage) -> HistoryMessage:
        if not isinstance(message, UserMessage | ToolMessage) or not unread_files(message.content):
            return message
        return message.model_copy(update={"content": await self._content(reading, message.content)})

    async def _content(self, reading: "_Reading", content: Content) -> Content:
        """Put the files of a message into it; one that is too long, as far as it fits what the message asks."""
        digests = [file.digest for file in unread_files(content)]
        if not digests:
            return content
        texts = {digest: await self._text(reading, digest) for digest in digests}
        shares = _shares({digest: text.tokens for digest, text in texts.items()}, reading.budget_tokens)
        question = "\n".join(texts_in(content))
        blocks = {
            digest: await asyncio.to_thread(_block, digest, text, question, shares[digest])
            for digest, text in texts.items()
        }
        return with_files(content, blocks)

    async def _text(self, reading: "_Reading", digest: str) -> FileText:
        read = reading.given.read
        if digest not in read:
            read[digest] = await self._read(reading, reading.given.files[digest])
        return read[digest]

    async def _read(self, reading: "_Reading", file: GivenFile) -> FileText:
        caller = reading.caller
        found = await self._bytes(caller, file)
        try:
            media_type = media_type_of(found.media_type, found.name, found.body)
            readable = ReadableFile(caller.tenant, caller.user_id, "", media_type, found.body)
            async with self._documents.read(readable) as cut:
                chunks = [chunk async for batch in cut.batches for chunk in batch.chunks]
        except InvalidRequest as error:
            raise file.refused(error.message) from error
        # Each piece counts up to one token too much, as a part of a token counts as one.
        if (least := sum(chunk.tokens - 1 for chunk in chunks)) > reading.budget_tokens:
            return FileText(found.name, "", least, chunks)
        text = await asyncio.to_thread(readable_text, media_type, found.body, chunks)
        tokens = await asyncio.to_thread(
            lambda: estimate_tokens(text) + estimate_tokens(attached_file(found.name, "", ""))
        )
        return FileText(found.name, text, tokens + MARKS_TOKENS, chunks)

    async def _bytes(self, caller: Caller, file: GivenFile) -> FileBytes:
        file_id = file.part.file_id
        if file_id is None:
            media_type, body = await asyncio.to_thread(bytes_given, file)
            return FileBytes(file.name, media_type, body)
        if self._stored is None:
            message = "Files are not stored here: give the file itself in 'file_data'."
            raise UnsupportedValue(message, param=file.param)
        try:
            found = await self._stored.read(caller, file_id)
        except NotFound:
            raise InvalidRequest(f"There is no file {file_id!r}.", param=file.param) from None
        return found if file.part.filename is None else found._replace(name=file.part.filename)


def _shares(tokens: Mapping[str, int], budget_tokens: int) -> Mapping[str, int]:
    """Share the budget out: what short files leave of their parts, longer ones get."""
    shares, left = dict[str, int](), budget_tokens
    for place, (digest, count) in enumerate(sorted(tokens.items(), key=lambda each: each[1])):
        shares[digest] = min(count, left // (len(tokens) - place))
        left -= shares[digest]
    return shares


def _block(digest: str, file: FileText, question: str, budget_tokens: int) -> str:
    if file.tokens <= budget_tokens:
        return attached_file(file.name, digest, file.text)
    around = MARKS_TOKENS + estimate_tokens(attached_file(file.name, "", ""))
    chosen = best_chunks(file.chunks, question, budget_tokens - around)
    return attached_file(file.name, digest, joined_text(chosen, GAP), (len(chosen), len(file.chunks)))
