"""The stored model calls of a turn, and their prompts, which are rebuilt from the log."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from backend.conversations.domain.conversation_log import (
    WITHHELD,
    Entry,
    EntryKind,
    emptied_message,
    newest_reset,
    sent_entries,
)
from backend.conversations.domain.prompt_record import NO_REUSE, Reuse, SentPrompt, Shortfall, inherited
from shared.models.canonical import message_json
from shared.models.events import Cost, Usage
from shared.models.messages import Message, SystemMessage, ToolMessage, UserMessage
from shared.models.values import JsonObject, Value
from shared.prompts.message_order import system_messages
from shared.tokens import message_tokens

SYSTEM = "system"


class PromptHeader(Value):
    """The part before the log in each request of an epoch; `tools` is the array in JSON, "" without tools."""

    tools: str
    system_prompt: str


class TailMessage(Value):
    """A context message that was sent but is not stored in the log; `index` is its index among the messages."""

    index: int
    text: str


class ModelCall(Value):
    """One model call of a turn.

    Its prompt was the header, then the log below position `log_end`, with the messages of `tail` at their indexes.
    `epoch_reason` is set on the first call of an epoch, `usage` once the call has ended, and `cost` where the operator
    has given prices.
    """

    call: int
    epoch: int
    epoch_reason: str | None
    log_end: int
    header: PromptHeader
    tail: tuple[TailMessage, ...] = ()
    reuse: Reuse = NO_REUSE
    shortfall: Shortfall | None = None
    usage: Usage | None = None
    cost: Cost | None = None


class CallsMade(Value):
    """The model calls that one write of a turn stores; `sent` is the newest prompt, None to leave it unchanged."""

    conversation_id: str
    response_id: str
    calls: tuple[ModelCall, ...]
    sent: SentPrompt | None


NO_CALLS = CallsMade(conversation_id="", response_id="", calls=(), sent=None)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One message of a prompt, with its position in the log and its turn; both are None outside of the log."""

    kind: str
    message: Message
    position: int | None
    turn_id: str | None


def prompt_parts(call: ModelCall, log: Sequence[Entry]) -> tuple[PromptPart, ...]:
    """Rebuild the messages of a call; `log` is the log of the conversation from position 0."""
    held = log[: call.log_end]
    parts = [PromptPart(SYSTEM, message, None, None) for message in system_messages(call.header.system_prompt)]
    parts += [
        PromptPart(entry.kind.value, entry.message, entry.position, entry.turn_id)
        for entry in sent_entries(held, newest_reset(held))
        if entry.message is not None
    ]
    for tail in call.tail:
        message = UserMessage(content=tail.text)
        parts.insert(tail.index, PromptPart(EntryKind.DYNAMIC_CONTEXT.value, message, None, None))
    return tuple(parts)


def shared_prompt(sent: SentPrompt | None, log: Sequence[Entry]) -> SentPrompt | None:
    """Return the part of a conversation's newest prompt that a fork with this log sends too.

    Tool results at the end of the log do not count, because results of earlier calls may still be inserted before them.
    """
    if sent is None or not log or log[-1].epoch != sent.epoch:
        return None
    entries = list(sent_entries(log, newest_reset(log)))
    while entries and isinstance(entries[-1].message, ToolMessage):
        entries.pop()
    return inherited(sent, len(entries))


def shown_prompt(call: ModelCall, parts: Sequence[PromptPart], turn_id: str, withheld: frozenset[str]) -> JsonObject:
    """Return a call of the turn `turn_id` as a client gets it, with notices in place of withheld texts."""
    return {
        "call": call.call,
        "epoch": call.epoch,
        "epoch_reason": call.epoch_reason,
        "tools": orjson.loads(call.header.tools) if call.header.tools else [],
        "messages": [
            _shown_part(part, withheld, turn_id, is_reused=place < call.reuse.messages)
            for place, part in enumerate(parts)
        ],
        "reused_bytes": call.reuse.size_bytes,
        "reused_tokens": call.reuse.tokens,
        "cached_tokens": call.usage.cached_tokens if call.usage is not None else None,
        "cost": call.cost.model_dump() if call.cost is not None else None,
        "first_difference": call.reuse.first_difference,
        "shortfall": call.shortfall,
    }


def _shown_part(part: PromptPart, withheld: frozenset[str], turn_id: str, *, is_reused: bool) -> JsonObject:
    # A message outside of the log belongs to this turn, except the system message, which holds no text of knowledge.
    is_withheld = (part.turn_id or turn_id) in withheld and part.kind != SYSTEM
    message = _emptied(part) if is_withheld else part.message
    return {
        "kind": part.kind,
        **message_json(message),
        "position": part.position,
        "tokens": message_tokens(message),
        "reused": is_reused,
    }


def _emptied(part: PromptPart) -> Message:
    if part.kind == EntryKind.DYNAMIC_CONTEXT:
        return UserMessage(content=WITHHELD)
    return part.message if isinstance(part.message, SystemMessage) else emptied_message(part.message) or part.message
