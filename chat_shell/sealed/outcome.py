"""The values of a restricted search: the search, the backend's answer, its progress and its outcome."""

from dataclasses import dataclass, field
from datetime import datetime

from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Released
from shared.disclosure.frame import USUAL_RULES, BaseRules
from shared.models.knowledge_api import MAX_CANARY_HITS, ToldFact
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode, PolicyRefusal, Reason

PREVIEW_CHARACTERS = 200
SummaryResult = Released | PolicyRefusal | Failure | GateBlock
"""What a restricted search ends in: a summary that may be shown, or the code of why there is none."""


@dataclass(frozen=True, slots=True)
class SealedSearch:
    """A search of a restricted turn.

    The main model wrote `query`. `last_message` is the user's latest message, and `user_words` the text of all the
    user's messages in the conversation. `deadline` is the turn's.
    """

    ticket: str
    request_id: str
    query: str
    last_message: str
    user_words: str
    knowledge_base_ids: tuple[str, ...]
    deadline: datetime


@dataclass(frozen=True, slots=True)
class SealedSearchResult:
    """The backend's answer: chunks, an earlier release, or a refusal; the last two are in its audit already.

    `siblings` are other chunks of the same documents, for the gate alone: terms that they define must not be named
    either. `canary_replies` counts the searches of the last hour, in any process, in which the secondary model
    repeated canaries. `areas` are what findings can be about where one of the bases has the grade `strict`, and None
    elsewhere. `translatable_base_ids` are the bases whose owners allow that their text is summarised in another
    language. `rules` are what the owners say of the bases. `is_weighed`: prose has to be weighed by its meaning.
    """

    search_id: str
    refusal: Failure | None = None
    released: Released | None = None
    areas: tuple[str, ...] | None = None
    chunks: tuple[ProtectedChunk, ...] = ()
    siblings: tuple[ProtectedChunk, ...] = ()
    canary_replies: int = 0
    translatable_base_ids: frozenset[str] = frozenset()
    rules: BaseRules = USUAL_RULES
    is_weighed: bool = False


@dataclass(slots=True)
class SearchProgress:
    """The counts of a running search.

    `search_id` is None until the backend has searched; `is_audited` tells that it has recorded the outcome already,
    and `is_open_ask` that the pre-screen refused a request that guesses at nothing. `facts` are those that the newest
    reply tells, where it was weighed.
    """

    started_at: datetime
    search_id: str | None = None
    is_audited: bool = False
    is_open_ask: bool = False
    chunks_found: int = 0
    chunks_sent: int = 0
    rewrites: int = 0
    canary_hits: int = 0
    gate_codes: list[GateCode] = field(default_factory=list[GateCode])
    facts: tuple[ToldFact, ...] | None = None

    @property
    def is_model_asked(self) -> bool:
        """Whether the secondary model was asked."""
        return self.chunks_sent > 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a search, as it is recorded before anything is released.

    `is_open_ask`: the pre-screen refused a request that guesses at nothing, which does not count towards a pause.
    """

    search_id: str | None
    knowledge_base_ids: tuple[str, ...]
    reason: Reason
    gate_codes: tuple[GateCode, ...]
    rewrites: int
    latency_ms: int
    chunks_found: int
    chunks_sent: int
    canary_hits: int
    is_open_ask: bool
    released: Released | None
    facts: tuple[ToldFact, ...] | None = None

    @property
    def decision(self) -> Decision:
        """Whether a summary is to be released."""
        return Decision.REFUSE if self.released is None else Decision.ANSWER

    @property
    def preview(self) -> str:
        """The first characters of the summary that is to be released; empty where there is none."""
        return "" if self.released is None else self.released.summary[:PREVIEW_CHARACTERS]


def outcome_of(search: SealedSearch, result: SummaryResult, progress: SearchProgress, now: datetime) -> Outcome:
    """Return the outcome for a result and the counts of its search."""
    released = result if isinstance(result, Released) else None
    return Outcome(
        search_id=progress.search_id,
        knowledge_base_ids=search.knowledge_base_ids,
        reason=result.reason if isinstance(result, Released) else result,
        gate_codes=tuple(dict.fromkeys(progress.gate_codes)),
        rewrites=progress.rewrites,
        latency_ms=max(0, round((now - progress.started_at).total_seconds() * 1000)),
        chunks_found=progress.chunks_found,
        chunks_sent=progress.chunks_sent,
        canary_hits=min(progress.canary_hits, MAX_CANARY_HITS),
        is_open_ask=progress.is_open_ask,
        released=released,
        facts=progress.facts if released else None,
    )
