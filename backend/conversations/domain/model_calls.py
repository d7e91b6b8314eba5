"""The stored model calls of a turn, and their prompts, which are rebuilt from the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from backend.conversations.domain.conversation_log import (
    WITHHELD,
    Entry,
    EntryKind,
    EpochState,
    empty_message,
    newest_epoch_state,
    select_sent,
    select_sent_before,
)
from backend.conversations.domain.placed_blocks import ANCHORED, AgentRef, Placement
from backend.conversations.domain.prompt_record import NO_REUSE, MissCause, Reuse, SentPrompt, Shortfall, inherit_prompt
from shared.models.canonical import message_json
from shared.models.events import Cost, Usage
from shared.models.messages import Message, SystemMessage, ToolMessage, UserMessage
from shared.models.values import JsonObject, Value
from shared.prompts.message_order import system_messages
from shared.tokens import message_tokens

SYSTEM = "system"
SUMMARY_REQUEST = "summary_instruction"
"""Kinds of messages that are no kinds of entries."""

UNLOGGED_KINDS = frozenset({EntryKind.REMINDER.value, SUMMARY_REQUEST, EntryKind.SUMMARY.value})
"""The kinds of messages that one model call holds outside of the log: the instruction for a summary, and the summary of
the stretch before it, are in no other."""


class PromptHeader(Value):
    """The part before the log in each request of an epoch; `tools` is the array in JSON, "" without tools."""

    tools: str
    system_prompt: str


class TailMessage(Value):
    """A message of the user that was sent but is not stored in the log; `index` is its index among all messages."""

    index: int
    text: str
    kind: str = EntryKind.DYNAMIC_CONTEXT.value


class Gauge(Value):
    """The context window of a call's model, what of it the answer may take, and the estimated size of the prompt."""

    window_tokens: int
    reserved_tokens: int
    prompt_tokens: int


class Excerpt(Value):
    """The part of the log that a summary was made of: what requests held under a reset, before position `until`."""

    reset: EpochState
    until: int


class CacheMiss(Value):
    """Why the provider's cache was not read as far as it could be, and what the provider says, "" where nothing."""

    cause: MissCause | None = None
    diagnosis: str = ""


NO_MISS = CacheMiss()


class ModelCall(Value):
    """One model call of a turn.

    Its prompt was the header, then the log below position `log_end`, with the messages of `tail` at their indexes.
    Where the call made a summary, `summary_of` is what stood in its prompt in the place of the log.
    `rewritten_tokens` is the estimated size of what it sent behind the first part that had moved, although the call
    before had sent it too. `epoch_reason` is set on the first call of an epoch, `usage` once the call has ended, and
    `cost` where the operator has given prices. `left_out` is that of `ModelCallFinished`.
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
    gauge: Gauge | None = None
    summary_of: Excerpt | None = None
    placement: Placement = ANCHORED
    rewritten_tokens: int = 0
    left_out: tuple[str, ...] = ()
    miss: CacheMiss = NO_MISS

    @property
    def shown_shortfall(self) -> Shortfall | None:
        """The shortfall: that of a policy wherever one has moved messages, whatever the provider then read of the rest.

        It is derived and not stored, because the release before refuses a shortfall that it does not know.
        """
        is_policy = self.reuse.first_difference is None and self.rewritten_tokens > 0
        return Shortfall.POLICY if is_policy else self.shortfall


class CallsMade(NamedTuple):
    """The model calls that one write of a turn stores; `sent` is the newest prompt, None to leave it unchanged."""

    conversation_id: str
    response_id: str
    calls: tuple[ModelCall, ...]
    sent: SentPrompt | None


NO_CALLS = CallsMade(conversation_id="", response_id="", calls=(), sent=None)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One message of a prompt, with its position in the log and its turn; both are None outside of the log.

    `agents` are those whose words the message may hold.
    """

    kind: str
    message: Message
    position: int | None
    turn_id: str | None
    agents: frozenset[AgentRef] = frozenset()


def prompt_parts(call: ModelCall, log: Sequence[Entry], agent: AgentRef | None = None) -> tuple[PromptPart, ...]:
    """Rebuild the messages of a call of a turn with this agent; `log` is the conversation's from position 0.

    All that such a turn has sent outside of the log may hold words of its agent, and a summary those of all agents.
    """
    held = log[: call.log_end]
    own = frozenset([agent] if agent is not None else list[AgentRef]())
    parts = [PromptPart(SYSTEM, message, None, None, own) for message in system_messages(call.header.system_prompt)]
    parts += [
        PromptPart(entry.kind.value, entry.message, entry.position, entry.turn_id, entry.agents)
        for entry in _select_sent_in(call, held)
        if entry.message is not None
    ]
    for tail in call.tail:
        is_summary = tail.kind == EntryKind.SUMMARY.value
        agents = own.union(*(entry.agents for entry in held)) if is_summary else own
        parts.insert(tail.index, PromptPart(tail.kind, UserMessage(content=tail.text), None, None, agents))
    return tuple(parts)


def _select_sent_in(call: ModelCall, held: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of the log in the prompt of a call."""
    excerpt = call.summary_of
    if excerpt is None:
        return select_sent(held, newest_epoch_state(held))
    return select_sent_before(select_sent(held, excerpt.reset), excerpt.until)


def share_prompt(sent: SentPrompt | None, log: Sequence[Entry]) -> SentPrompt | None:
    """Return the part of a conversation's newest prompt that a fork with this log sends too.

    Tool results at the end of the log do not count, because results of earlier calls may still be inserted before them.
    """
    if sent is None or not log or log[-1].epoch != sent.epoch:
        return None
    entries = list(select_sent(log, newest_epoch_state(log)))
    while entries and isinstance(entries[-1].message, ToolMessage):
        entries.pop()
    return inherit_prompt(sent, len(entries))


@dataclass(frozen=True, slots=True)
class WithheldTurns:
    """The turns that a reader may not read; `with_users` says that what users wrote in them is withheld, too.

    Of the turns with an agent of `agents`, which they may not use, its words are withheld.
    """

    ids: frozenset[str]
    with_users: bool
    agents: frozenset[AgentRef] = frozenset()


def show_prompt(call: ModelCall, parts: Sequence[PromptPart], turn_id: str, withheld: WithheldTurns) -> JsonObject:
    """Return a call of the turn `turn_id` as a client gets it, with notices in place of withheld texts."""
    return {
        "call": call.call,
        "epoch": call.epoch,
        "epoch_reason": call.epoch_reason,
        "tools": orjson.loads(call.header.tools) if call.header.tools else [],
        "messages": [
            _show_part(part, withheld, turn_id, is_reused=place < call.reuse.messages)
            for place, part in enumerate(parts)
        ],
        "reused_bytes": call.reuse.size_bytes,
        "reused_tokens": call.reuse.tokens,
        "cached_tokens": call.usage.cached_tokens if call.usage is not None else None,
        "cost": call.cost.model_dump() if call.cost is not None else None,
        "first_difference": call.reuse.first_difference,
        "shortfall": call.shown_shortfall,
        "cache_miss": call.miss.cause,
        "cache_diagnosis": call.miss.diagnosis or None,
        "placement": call.placement,
        "rewritten_tokens": call.rewritten_tokens,
        "purpose": "answer" if call.summary_of is None else "summary",
        "gauge": _show_gauge(call),
    }


def _show_gauge(call: ModelCall) -> JsonObject | None:
    """Return how full the window was; the provider's count of the prompt where it gave one, else an estimate."""
    if call.gauge is None:
        return None
    counted = call.usage.input_tokens if call.usage is not None else None
    return {
        "window_tokens": call.gauge.window_tokens,
        "used_tokens": counted or call.gauge.prompt_tokens,
        "reserved_tokens": call.gauge.reserved_tokens,
    }


def _show_part(part: PromptPart, withheld: WithheldTurns, turn_id: str, *, is_reused: bool) -> JsonObject:
    # A message outside of the log belongs to this turn, except the system message, which holds no text of knowledge.
    is_withheld = (part.turn_id or turn_id) in withheld.ids and part.kind != SYSTEM
    message = _empty(part, withheld) if is_withheld else part.message
    if not part.agents.isdisjoint(withheld.agents):
        message = SystemMessage(content=WITHHELD) if part.kind == SYSTEM else UserMessage(content=WITHHELD)
    return {
        "kind": part.kind,
        **message_json(message),
        "position": part.position,
        "tokens": message_tokens(message),
        "reused": is_reused,
    }


def _empty(part: PromptPart, withheld: WithheldTurns) -> Message:
    if part.kind in (EntryKind.DYNAMIC_CONTEXT, EntryKind.SUMMARY):
        return UserMessage(content=WITHHELD)
    if isinstance(part.message, SystemMessage):
        return part.message
    return empty_message(part.message, with_users=withheld.with_users) or part.message
