"""Reading the files in the input of a turn, before the turn starts."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.conversations.domain.attached_files import FileMessage, unread_files, with_files, without_files
from backend.conversations.domain.turn_input import ParsedInput
from backend.extraction.domain.chunking import join_text, readable_text
from backend.extraction.domain.media_types import charset_of, media_type_of
from backend.extraction.ports import DocumentReader, ReadableFile
from backend.foundation.services.steps import run_cooperatively
from backend.identity.domain import Caller
from backend.knowledge.domain.excerpts import best_chunks
from backend.knowledge.domain.file_indexes import FileIndexState, IndexedFile
from backend.openai_api.domain.turn_request import TurnRequest
from backend.search.domain.chunks import Chunk
from backend.turns.domain.file_parts import GivenFile, bytes_given, without_bytes_cooperatively
from backend.turns.domain.file_room import Room
from backend.turns.ports.files_by_id import FilesById
from shared.errors import ContextTooLong, InvalidRequest, NotFound, UnsupportedValue
from shared.models.messages import Content, HistoryMessage, ToolMessage, UserMessage, texts_in
from shared.prompts import attached_files as words
from shared.prompts.attached_files import GAP, render_file, render_without_text
from shared.tokens import estimate_tokens

WINDOW_SHARE = 4
"""The files that one message gives by their bytes take at most a quarter of the model's window."""

MARKS_TOKENS = 40
"""More than the hashes in the marks around a file take."""

STORED_MARKS_TOKENS = 100
"""More than the marks and the fixed words around a stored file take, with its id."""


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
    """The files of one request by their digests, and what was read of those that it gives by their bytes."""

    files: Mapping[str, GivenFile] = field(default_factory=dict[str, GivenFile])
    read: dict[str, FileText] = field(default_factory=dict[str, FileText])


@dataclass
class _Reading:
    """Who gives files, which ones, those that are stored, and the room that is left for them."""

    caller: Caller
    given: FilesOfRequest
    room: Room
    stored: Mapping[str, IndexedFile]
    left_tokens: int
    blocks: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def budget_tokens(self) -> int:
        """How many tokens the files take that one message gives by their bytes."""
        return self.room.window_tokens // WINDOW_SHARE


class InputFiles:
    """Puts the texts of files in the places of the files; nothing that was recognised as seen is read again."""

    def __init__(self, documents: DocumentReader, stored: FilesById | None) -> None:
        self._documents = documents
        self._stored = stored

    async def take_out(self, request: TurnRequest) -> tuple[TurnRequest, FilesOfRequest]:
        """Return the request with hashes in the places of its files, and the files.

        Raises:
            InvalidRequest: there are too many files, or one has neither bytes nor an id; `param` names it.
        """
        if isinstance(request.input, str):
            return request, FilesOfRequest()
        found = await run_cooperatively(without_bytes_cooperatively(request.input))
        if not found.files:
            return request, FilesOfRequest()
        return request.model_copy(update={"input": found.items}), FilesOfRequest(found.files)

    async def put_into(
        self, caller: Caller, read: ParsedInput, given: FilesOfRequest, room_of: Callable[[], Room]
    ) -> ParsedInput:
        """Return an input with the text of each file in a message of its own, above the message that it came with.

        The files of the current message are those of the input that is returned. What a function returns stays one
        message.

        Raises:
            InvalidRequest: a file cannot be read; `param` names it.
            ContextTooLong: a file is longer than what can be had of the window; `param` names it.
            Unavailable: too many files are waiting to be read. Retryable.
        """
        contents = [each.content for each in read.messages if isinstance(each, UserMessage | ToolMessage)]
        waiting = [file.digest for content in contents for file in unread_files(content)]
        if not waiting:
            return read
        stored = await self._find_stored_files(caller, [given.files[digest] for digest in waiting])
        room = await asyncio.to_thread(room_of)
        reading = _Reading(caller, given, room, stored, room.soft_tokens)
        history = [each for message in read.history for each in await self._messages(reading, message)]
        files = await self._blocks(reading, read.current) if read.current is not None else {}
        current = read.current and without_files(read.current)
        return replace(read, history=tuple(history), current=current, files=tuple(files.values()), ends=())

    async def _find_stored_files(self, caller: Caller, files: Sequence[GivenFile]) -> Mapping[str, IndexedFile]:
        """Return the stored files by their ids.

        Raises:
            InvalidRequest: the caller has one of them not; `param` names it.
        """
        named = {file.part.file_id: file for file in files if file.part.file_id is not None}
        if not named:
            return {}
        if self._stored is None:
            message = "Files are not stored here: give the file itself in 'file_data'."
            raise UnsupportedValue(message, param=next(iter(named.values())).param)
        found = await self._stored.find(caller, list(named))
        for file_id, file in named.items():
            if file_id not in found:
                raise InvalidRequest(f"There is no file {file_id!r}.", param=file.param)
        return found

    async def _messages(self, reading: _Reading, message: HistoryMessage) -> Sequence[HistoryMessage]:
        if not isinstance(message, UserMessage | ToolMessage) or not unread_files(message.content):
            return (message,)
        blocks = await self._blocks(reading, message.content)
        if isinstance(message, ToolMessage):
            return (message.model_copy(update={"content": with_files(message.content, blocks)}),)
        rest = without_files(message.content)
        own = (message.model_copy(update={"content": rest}),) if rest else ()
        return (*[FileMessage(content=block) for block in blocks.values()], *own)

    async def _blocks(self, reading: _Reading, content: Content) -> dict[str, str]:
        """Return the blocks of the files of a message by their digests, in its order.

        Of a file that is given by its bytes and too long, the block holds what fits the message's question.
        """
        files = {file.digest: reading.given.files[file.digest] for file in unread_files(content)}
        by_bytes = {digest: file for digest, file in files.items() if file.part.file_id is None}
        found = await self._excerpts(reading, by_bytes, "\n".join(texts_in(content)))
        for digest, file in files.items():
            if digest not in by_bytes:
                found[digest] = await self._render_stored_once(reading, file)
        return {digest: found[digest] for digest in files}

    async def _excerpts(self, reading: _Reading, files: Mapping[str, GivenFile], question: str) -> dict[str, str]:
        texts = {digest: await self._text(reading, file) for digest, file in files.items()}
        shares = _shares({digest: text.tokens for digest, text in texts.items()}, reading.budget_tokens)
        needed = 0
        for digest, file in files.items():
            needed += shares[digest]
            if needed > reading.room.hard_tokens:
                raise _too_long(file, texts[digest].name, needed, reading.room)
        reading.left_tokens -= needed
        return {
            digest: await asyncio.to_thread(_block, digest, text, question, shares[digest])
            for digest, text in texts.items()
        }

    async def _render_stored_once(self, reading: _Reading, file: GivenFile) -> str:
        if file.digest not in reading.blocks:
            reading.blocks[file.digest] = await self._new_stored_block(reading, file)
        return reading.blocks[file.digest]

    async def _new_stored_block(self, reading: _Reading, file: GivenFile) -> str:
        stored = reading.stored[file.part.file_id or ""]
        name = file.part.filename or stored.name
        tokens = stored.tokens + STORED_MARKS_TOKENS
        if stored.state is FileIndexState.READ and tokens <= reading.left_tokens and self._stored is not None:
            reading.left_tokens -= tokens
            try:
                text = await self._stored.text(stored)
            except NotFound:
                raise InvalidRequest(f"There is no file {stored.file_id!r}.", param=file.param) from None
            return render_file(name, file.digest, text, file_id=stored.file_id)
        if stored.state is FileIndexState.READ and not reading.room.lists:
            raise _too_long(file, name, tokens, reading.room._replace(hard_tokens=max(0, reading.left_tokens)))
        reading.left_tokens -= STORED_MARKS_TOKENS
        return render_without_text(name, file.digest, stored.file_id, _why_not_shown(stored))

    async def _text(self, reading: _Reading, file: GivenFile) -> FileText:
        read = reading.given.read
        if file.digest not in read:
            read[file.digest] = await self._read(reading, file)
        return read[file.digest]

    async def _read(self, reading: _Reading, file: GivenFile) -> FileText:
        caller = reading.caller
        given_type, body = await asyncio.to_thread(bytes_given, file)
        try:
            media_type = media_type_of(given_type, file.name, body)
            readable = ReadableFile(caller.tenant, caller.user_id, "", media_type, body, charset_of(given_type))
            async with self._documents.read(readable) as cut:
                chunks = [chunk async for batch in cut.batches for chunk in batch]
        except InvalidRequest as error:
            raise file.build_refusal(error.message) from error
        # Each piece counts up to one token too much, as a part of a token counts as one.
        if (least := sum(chunk.tokens - 1 for chunk in chunks)) > reading.budget_tokens:
            return FileText(file.name, "", least, chunks)
        text = await asyncio.to_thread(readable_text, media_type, body, chunks)
        tokens = await asyncio.to_thread(
            lambda: estimate_tokens(text) + estimate_tokens(render_file(file.name, "", ""))
        )
        return FileText(file.name, text, tokens + MARKS_TOKENS, chunks)


def _why_not_shown(file: IndexedFile) -> str:
    """Say in the prompt why the text of a stored file is not there."""
    match file.state:
        case FileIndexState.READ:
            return words.LISTED.format(tokens=file.tokens)
        case FileIndexState.BEING_READ:
            return words.BEING_READ
        case _:
            return words.UNREADABLE.format(reason=file.error.message if file.error is not None else "it was deleted.")


def _too_long(file: GivenFile, name: str, needed_tokens: int, room: Room) -> ContextTooLong:
    message = (
        f"The file {name!r} is too long: about {needed_tokens} tokens are needed, {room.hard_tokens} of the model's "
        f"window of {room.window_tokens} are available; give a shorter one"
    )
    if file.part.file_id is None:
        message += ", or upload it and name it by 'file_id'"
    return ContextTooLong(f"{message}.", param=file.param)


def _shares(tokens: Mapping[str, int], budget_tokens: int) -> Mapping[str, int]:
    """Share the budget out: what short files leave of their parts, longer ones get."""
    shares, left = dict[str, int](), budget_tokens
    for place, (digest, count) in enumerate(sorted(tokens.items(), key=lambda each: each[1])):
        shares[digest] = min(count, left // (len(tokens) - place))
        left -= shares[digest]
    return shares


def _block(digest: str, file: FileText, question: str, budget_tokens: int) -> str:
    if file.tokens <= budget_tokens:
        return render_file(file.name, digest, file.text)
    around = MARKS_TOKENS + estimate_tokens(render_file(file.name, "", ""))
    chosen = best_chunks(file.chunks, question, budget_tokens - around)
    return render_file(file.name, digest, join_text(chosen, GAP), (len(chosen), len(file.chunks)))
