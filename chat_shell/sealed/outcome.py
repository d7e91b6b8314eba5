"""A restricted search under way: what was asked, what came of it, and how it is told to the backend."""

from dataclasses import dataclass, field
from datetime import datetime

from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.released import Released
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode, PolicyRefusal, Reason

PREVIEW_CHARACTERS = 200
MAX_CANARY_HITS = 10_000
"""The largest count that the backend takes."""

Refusal = PolicyRefusal | Failure | GateBlock
Ending = Released | Refusal


@dataclass(frozen=True, slots=True)
class SealedAsk:
    """A search of a restricted turn.

    `query` was written by the main model; `last_message` is what the user said last, `user_words` all that he has
    said in the conversation. `deadline` is the turn's.
    """

    ticket: str
    request_id: str
    query: str
    last_message: str
    user_words: str
    knowledge_base_ids: tuple[str, ...]
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """What the backend found, has released before, or refuses; the last two stand in its audit already.

    `siblings` are other chunks of the same documents, for the gate alone: what they define is not to be named either.
    `canary_replies` counts the last hour's searches in which the secondary model repeated canaries, in any process.
    """

    search_id: str
    refusal: Failure | None = None
    released: Released | None = None
    chunks: tuple[ProtectedChunk, ...] = ()
    siblings: tuple[ProtectedChunk, ...] = ()
    canary_replies: int = 0


@dataclass(slots=True)
class Tally:
    """What is counted while a search runs; `is_audited`: the backend keeps a record of it already."""

    started_at: datetime
    search_id: str | None = None
    is_audited: bool = False
    chunks_found: int = 0
    chunks_sent: int = 0
    rewrites: int = 0
    canary_hits: int = 0
    gate_codes: list[GateCode] = field(default_factory=list[GateCode])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a search, as it is recorded before anything is released."""

    search_id: str | None
    knowledge_base_ids: tuple[str, ...]
    reason: Reason
    gate_codes: tuple[GateCode, ...]
    rewrites: int
    latency_ms: int
    chunks_found: int
    chunks_sent: int
    canary_hits: int
    released: Released | None

    @property
    def decision(self) -> Decision:
        """Whether something is to be released."""
        return Decision.REFUSE if self.released is None else Decision.ANSWER

    @property
    def preview(self) -> str:
        """The beginning of what is to be released."""
        return "" if self.released is None else self.released.summary[:PREVIEW_CHARACTERS]


def outcome_of(ask: SealedAsk, ending: Ending, tally: Tally, now: datetime) -> Outcome:
    """Put an ending and its counts together."""
    released = ending if isinstance(ending, Released) else None
    return Outcome(
        search_id=tally.search_id,
        knowledge_base_ids=ask.knowledge_base_ids,
        reason=ending.reason if isinstance(ending, Released) else ending,
        gate_codes=tuple(dict.fromkeys(tally.gate_codes)),
        rewrites=tally.rewrites,
        latency_ms=max(0, round((now - tally.started_at).total_seconds() * 1000)),
        chunks_found=tally.chunks_found,
        chunks_sent=tally.chunks_sent,
        canary_hits=min(tally.canary_hits, MAX_CANARY_HITS),
        released=released,
    )
