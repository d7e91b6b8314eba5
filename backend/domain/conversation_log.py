"""The append-only record of a conversation: what was sent to a model and what it said."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby

from shared.models.messages import AssistantMessage, HistoryMessage, ToolMessage
from shared.models.values import Value


class EntryKind(StrEnum):
    """What an entry is; more kinds come with files, summaries and resets."""

    USER = "user"
    DYNAMIC_CONTEXT = "dynamic_context"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    VOID = "void"


class Entry(Value):
    """One row of the log. Positions of a conversation count 0, 1, 2 without gaps.

    `message` is exactly what the model got or said (date suffix included); a void entry has none and
    says that the turn `turn_id` is skipped by later requests. `label` names the bases whose text the turn may
    hold; it stands on the entries that the turn began with.
    """

    position: int
    epoch: int
    turn_id: str
    kind: EntryKind
    message: HistoryMessage | None
    created_at: datetime
    label: tuple[str, ...] = ()


def history(entries: Sequence[Entry]) -> tuple[HistoryMessage, ...]:
    """Turn the log into the messages of a request: void turns left out, results in call order."""
    void_turns = {entry.turn_id for entry in entries if entry.kind is EntryKind.VOID}
    messages = [e.message for e in entries if e.message is not None and e.turn_id not in void_turns]
    return tuple(_in_call_order(messages))


def _in_call_order(messages: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    """Order the results behind each assistant message as its calls stand, whenever they arrived."""
    ordered: list[HistoryMessage] = []
    rank: dict[str, int] = {}
    for _, run in groupby(messages, type):
        ordered.extend(sorted(run, key=partial(_place, rank)))
        last = ordered[-1]
        calls = last.tool_calls if isinstance(last, AssistantMessage) else ()
        rank = {call.call_id: place for place, call in enumerate(calls)}
    return ordered


def _place(rank: Mapping[str, int], message: HistoryMessage) -> int:
    """Return where a result goes; all else stays where it is, sorting being stable."""
    return rank.get(message.call_id, len(rank)) if isinstance(message, ToolMessage) else 0


def pending_calls(messages: Sequence[HistoryMessage]) -> tuple[str, ...]:
    """Return the ids of tool calls that no result has answered, in call order."""
    waiting: dict[str, None] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting.update(dict.fromkeys(call.call_id for call in message.tool_calls))
        elif isinstance(message, ToolMessage):
            waiting.pop(message.call_id, None)
    return tuple(waiting)
