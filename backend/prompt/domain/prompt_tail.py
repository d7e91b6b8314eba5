"""The messages of a request that stand in no log, and that the next request may have elsewhere, or not at all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backend.conversations.domain.conversation_log import Entry, EntryKind, messages_of
from backend.conversations.domain.model_calls import TailMessage
from backend.conversations.domain.placed_blocks import CLASSIC, PlacedBlocks
from backend.prompt.domain.turn_record import TurnRecord
from shared.models.execution import ExecutionRequest
from shared.models.messages import HistoryMessage, UserMessage
from shared.prompts.message_order import context_index, context_of_request, system_messages

_STAND_ABOVE = frozenset({EntryKind.FILE, EntryKind.DYNAMIC_CONTEXT})


@dataclass(frozen=True, slots=True)
class MovedBlock:
    """A block of an agent under the placement `classic`: its index among the messages of the history, and its text."""

    index: int
    kind: EntryKind
    text: str


def list_moved_texts(blocks: PlacedBlocks) -> tuple[tuple[EntryKind, str], ...]:
    """Return the blocks of an agent that stand before the newest message of the user, its files and its context."""
    if blocks.placement != CLASSIC:
        return ()
    texts = (
        (EntryKind.CUSTOM_INSTRUCTIONS, blocks.instructions),
        (EntryKind.PROJECT_FILES, blocks.project_files),
    )
    return tuple((kind, text) for kind, text in texts if text and not text.isspace())


def place_blocks(sent: Sequence[Entry], record: TurnRecord) -> tuple[MovedBlock, ...]:
    """Return the moved blocks of a turn where they stand.

    `sent` are the entries that the request contains without what the turn has added. A turn that continues from tool
    results has the blocks where they stood before.
    """
    first = _index_of_newest_input(sent)
    return tuple(
        MovedBlock(index=index, kind=block.kind, text=record.texts[block.digest])
        for index, block in enumerate(record.moved, first)
    )


def history_with(entries: Iterable[Entry], moved: Iterable[MovedBlock]) -> tuple[HistoryMessage, ...]:
    """Return the messages of entries with the moved blocks among them."""
    messages = list(messages_of(entries))
    for block in moved:
        messages.insert(block.index, UserMessage(content=block.text))
    return tuple(messages)


def tail_of(request: ExecutionRequest, moved: Iterable[MovedBlock], *, keeps_context: bool) -> tuple[TailMessage, ...]:
    """Return the messages of a turn's first request that stand in no log, in order."""
    before = len(system_messages(request.system_prompt))
    tail = [TailMessage(index=before + block.index, kind=block.kind.value, text=block.text) for block in moved]
    context = "" if keeps_context else context_of_request(request)
    if context:
        tail.append(TailMessage(index=context_index(request), text=context))
    return tuple(tail)


def with_reminder(tail: tuple[TailMessage, ...], reminder: str, index: int) -> tuple[TailMessage, ...]:
    """Return the tail of a model call; `index` is the place behind all other messages."""
    return (*tail, TailMessage(index=index, kind=EntryKind.REMINDER.value, text=reminder)) if reminder else tail


def _index_of_newest_input(sent: Sequence[Entry]) -> int:
    newest = next((index for index in reversed(range(len(sent))) if sent[index].kind is EntryKind.USER), 0)
    while newest > 0 and sent[newest - 1].kind in _STAND_ABOVE:
        newest -= 1
    return newest
