"""The sealed room: turn a query into a released summary, or into no answer and a code for the reason."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import add
from typing import TypeVar

from chat_shell.sealed.backend_wire import OutcomeReceipt, SealedBackend
from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.gate.case import names_record
from chat_shell.sealed.outcome import SealedSearch, SealedSearchResult, SearchProgress, SummaryResult, outcome_of
from chat_shell.sealed.pre_screen import is_open_ask, pre_screen
from chat_shell.sealed.question_language import select_evidence
from chat_shell.sealed.room_observer import RoomObserver
from chat_shell.sealed.summary_writer import SummaryWriter
from chat_shell.sealed.verdicts import Released
from shared.models.execution import count_seconds_left
from shared.models.knowledge_api import MAX_SEALED_CHUNKS
from shared.models.safe_summary import Failure, PolicyRefusal, SummaryVersions
from shared.prompts.safe_summary import PROMPT_VERSION
from shared.tracing import span_of

KEPT_TIMES = 64
"""The newest model calls of this process whose times are kept."""

FIRST_SECONDS = 3.0
"""The usual time as long as no summary has been made: about what a model needs for so short a text."""

_ONE_IN = 20
"""So few searches take longer than the usual time."""


class LatencyPadding:
    """Lets searches take as long as two model calls, since a summary that was blocked is written twice.

    `sleep` waits for a number of seconds.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]]):
        self._sleep = sleep
        self._latest: deque[float] = deque(maxlen=KEPT_TIMES)

    async def pad(self, passed_seconds: float, most_seconds: float, calls: int = 0) -> None:
        """Wait until a search with so many model calls has taken the usual time, or `most_seconds`."""
        if calls:
            self._latest.append(passed_seconds / calls)
        await self._sleep(max(0.0, min(self._find_usual(), most_seconds) - passed_seconds))

    def _find_usual(self) -> float:
        latest = tuple(self._latest)
        if not latest:
            return FIRST_SECONDS
        pairs = sorted(map(add, latest, (*latest[1:], latest[0])))
        return pairs[-1 - len(pairs) // _ONE_IN]


T = TypeVar("T")

POLICY_VERSION = "7"
"""The version of the rules of the pre-screen and the room; a kept summary is valid for one version only."""

OUTCOME_TIMEOUT_SECONDS = 5.0
"""Time for recording the outcome, which comes after the summary's own time, because a timeout is recorded too."""

_CHANGES = (Failure.ACCESS_CHANGED, Failure.BASE_CHANGED, Failure.PAUSED, Failure.BUDGET_FACTS)
"""Reasons by which the backend forbids a release that the gate allowed."""


@dataclass(frozen=True, slots=True)
class RoomTimes:
    """How long a safe summary may take, and how long the recording of its outcome after it."""

    summary_seconds: float
    outcome_seconds: float = OUTCOME_TIMEOUT_SECONDS

    @property
    def longest_seconds(self) -> float:
        """The longest that `SealedRoom.summarise` takes."""
        return self.summary_seconds + self.outcome_seconds


class SealedRoom:
    """Answers restricted searches; one instance serves all turns at once. `now` is the clock."""

    def __init__(
        self,
        backend: SealedBackend,
        writer: SummaryWriter,
        observer: RoomObserver,
        now: Callable[[], datetime],
        latency_padding: LatencyPadding,
        times: RoomTimes,
    ):
        self._backend = backend
        self._writer = writer
        self._observer = observer
        self._now = now
        self._latency_padding = latency_padding
        self._times = times
        self._versions = SummaryVersions(
            policy_version=POLICY_VERSION,
            gate_version=writer.gate_version,
            prompt_version=PROMPT_VERSION,
            model=writer.model_name,
        )

    async def summarise(self, search: SealedSearch) -> Released | None:
        """Return a summary whose outcome is recorded, or None, whatever the cause. Only cancellation is raised.

        Whatever becomes of a search, it takes as long as others; only what is released again comes at once.
        """
        progress = SearchProgress(started_at=self._now())
        # Part of the turn's remaining time is kept for recording: a timeout is an outcome, too.
        left_seconds = count_seconds_left(search.deadline, progress.started_at) - self._times.outcome_seconds
        deciding = failure_for_exceptions(self._decide(search, progress), Failure.INVALID_OUTPUT)
        most_seconds = max(0.0, min(self._times.summary_seconds, left_seconds))
        result = await _in_time(deciding, most_seconds)
        if not progress.is_audited:
            result = await self._record(search, result, progress)
        self._observer.summary_completed(outcome_of(search, result, progress, self._now()))
        await self._take_usual_time(result, progress, most_seconds)
        return result if isinstance(result, Released) else None

    async def _take_usual_time(self, result: SummaryResult, progress: SearchProgress, most_seconds: float) -> None:
        passed_seconds = max(0.0, (self._now() - progress.started_at).total_seconds())
        if progress.search_id is None or (isinstance(result, Released) and not progress.is_model_asked):
            return
        # What has failed says nothing of how long a model needs.
        calls = 1 + progress.rewrites if progress.is_model_asked and not isinstance(result, Failure) else 0
        await self._latency_padding.pad(passed_seconds, most_seconds, calls)

    async def _decide(self, search: SealedSearch, progress: SearchProgress) -> SummaryResult:
        with span_of("safe_summary pre_screen"):
            # In a thread: a message of the largest size takes half a second.
            refusal = await asyncio.to_thread(pre_screen, search.last_message, search.query)
        if refusal is not None:
            progress.is_open_ask = await asyncio.to_thread(is_open_ask, search.last_message, search.query)
            return refusal
        if self._writer.is_stopped():
            return Failure.CIRCUIT_OPEN
        with span_of("safe_summary retrieval"):
            found = await self._find(search, progress)
        if not isinstance(found, SealedSearchResult):
            return found
        if self._writer.is_stopped(found.canary_replies):
            return Failure.CIRCUIT_OPEN
        question = search.last_message, search.query
        # In a thread: the words of many chunks are looked up.
        evidence = await asyncio.to_thread(
            select_evidence, question, found.chunks[:MAX_SEALED_CHUNKS], found.translatable_base_ids
        )
        if not evidence.chunks:
            return Failure.INSUFFICIENT_EVIDENCE
        given = *found.chunks, *found.siblings
        if await asyncio.to_thread(names_record, search.last_message, given, found.rules):
            return PolicyRefusal.KNOWLEDGE_BASE_QUESTION
        weigh = partial(self._backend.weigh, search, found.search_id)
        return await self._writer.write(search, evidence, found, weigh, progress)

    async def _find(self, search: SealedSearch, progress: SearchProgress) -> SealedSearchResult | SummaryResult:
        """Return evidence, or the result that the search has without any."""
        searching = self._backend.search(search, self._versions)
        found = await failure_for_exceptions(searching, Failure.AUDIT_UNAVAILABLE)
        if isinstance(found, Failure):
            progress.is_audited = found is Failure.BAD_TICKET
            return found
        progress.search_id = found.search_id
        progress.chunks_found = len(found.chunks)
        result = found.refusal or found.released
        progress.is_audited = result is not None
        return result or (found if found.chunks else Failure.INSUFFICIENT_EVIDENCE)

    async def _record(self, search: SealedSearch, result: SummaryResult, progress: SearchProgress) -> SummaryResult:
        """Have a result recorded; without a record, or after a change of access or base, nothing is released."""
        outcome = outcome_of(search, result, progress, self._now())
        self._observer.outcome_sent(outcome)
        recording = self._backend.record(search, self._versions, outcome)
        guarded = failure_for_exceptions(recording, Failure.AUDIT_UNAVAILABLE)
        with span_of("safe_summary record"):
            answer = await _in_time(guarded, self._times.outcome_seconds)
        receipt = answer if isinstance(answer, OutcomeReceipt) else OutcomeReceipt(None)
        changed = next((code for code in _CHANGES if code == receipt.reason), None)
        self._observer.outcome_answered(outcome.search_id, receipt, changed)
        if not isinstance(result, Released) or (receipt.recorded and receipt.release):
            return result
        return changed or Failure.AUDIT_UNAVAILABLE


async def _in_time(step: Awaitable[T], seconds: float) -> T | Failure:
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError:
        return Failure.TIMEOUT
