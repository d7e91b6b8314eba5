"""The sealed room: turn a query into a released summary, or into no answer and a code for the reason."""

import asyncio
from collections.abc import Awaitable
from typing import Generic, TypeVar

from chat_shell.sealed.backend_wire import OutcomeReceipt
from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.outcome import SealedSearch, SealedSearchResult, SearchProgress, SummaryResult, outcome_of
from chat_shell.sealed.pre_screen import is_open_ask, pre_screen
from chat_shell.sealed.question_language import select_evidence
from chat_shell.sealed.released import Released
from chat_shell.sealed.room_parts import RoomParts, RoomTimes
from chat_shell.sealed.summary_attempt import SummaryAttempt
from chat_shell.sealed.summary_prompt import SummaryPrompt
from chat_shell.sealed.verdicts import CaseT
from shared.models.execution import remaining_seconds
from shared.models.knowledge_api import MAX_SEALED_CHUNKS
from shared.models.safe_summary import Failure, SummaryVersions
from shared.prompts.safe_summary import PROMPT_VERSION
from shared.tracing import span_of

T = TypeVar("T")

POLICY_VERSION = "6"
"""The version of the rules of the pre-screen and the room; a kept summary is valid for one version only."""

_CHANGES = (Failure.ACCESS_CHANGED, Failure.BASE_CHANGED, Failure.PAUSED)
"""Reasons by which the backend forbids a release that the gate allowed."""


class SealedRoom(Generic[CaseT]):
    """Answers restricted searches; one instance serves all turns at once."""

    def __init__(self, parts: RoomParts[CaseT], times: RoomTimes):
        self._parts = parts
        self._times = times
        self._versions = SummaryVersions(
            policy_version=POLICY_VERSION,
            gate_version=parts.gate.version,
            prompt_version=PROMPT_VERSION,
            model=parts.model.name,
        )

    async def summarise(self, search: SealedSearch) -> Released | None:
        """Return a summary whose outcome is recorded, or None, whatever the cause. Only cancellation is raised.

        A search that ends without asking the secondary model takes as long as one that asks it.
        """
        progress = SearchProgress(started_at=self._parts.now())
        # Part of the turn's remaining time is kept for recording: a timeout is an outcome, too.
        left_seconds = remaining_seconds(search.deadline, progress.started_at) - self._times.outcome_seconds
        deciding = failure_for_exceptions(self._decide(search, progress), Failure.INVALID_OUTPUT)
        most_seconds = max(0.0, min(self._times.summary_seconds, left_seconds))
        result = await _in_time(deciding, most_seconds)
        if not progress.is_audited:
            result = await self._record(search, result, progress)
        self._parts.observer.summary_completed(outcome_of(search, result, progress, self._parts.now()))
        await self._take_usual_time(result, progress, most_seconds)
        return result if isinstance(result, Released) else None

    async def _take_usual_time(self, result: SummaryResult, progress: SearchProgress, most_seconds: float) -> None:
        passed_seconds = max(0.0, (self._parts.now() - progress.started_at).total_seconds())
        if progress.is_model_asked:
            self._parts.latency_padding.record(passed_seconds)
        elif progress.search_id is not None and not isinstance(result, Released):
            await self._parts.latency_padding.pad(passed_seconds, most_seconds)

    async def _decide(self, search: SealedSearch, progress: SearchProgress) -> SummaryResult:
        with span_of("safe_summary pre_screen"):
            # In a thread: a message of the largest size takes half a second.
            refusal = await asyncio.to_thread(pre_screen, search.last_message, search.query)
        if refusal is not None:
            progress.is_open_ask = await asyncio.to_thread(is_open_ask, search.last_message, search.query)
            return refusal
        model, circuit = self._parts.model, self._parts.circuit
        if circuit.is_open(model.name):
            return Failure.CIRCUIT_OPEN
        with span_of("safe_summary retrieval"):
            found = await self._find(search, progress)
        if not isinstance(found, SealedSearchResult):
            return found
        if circuit.is_open(model.name, found.canary_replies):
            return Failure.CIRCUIT_OPEN
        question = search.last_message, search.query
        # In a thread: the words of many chunks are looked up.
        evidence = await asyncio.to_thread(
            select_evidence, question, found.chunks[:MAX_SEALED_CHUNKS], found.translatable_base_ids
        )
        if not evidence.chunks:
            return Failure.INSUFFICIENT_EVIDENCE
        prompt = SummaryPrompt(search.query, evidence.answer_language, evidence.chunks, self._parts.new_token)
        siblings = (*evidence.withheld, *found.siblings)
        return await SummaryAttempt(self._parts, prompt, progress).run(search, evidence, siblings)

    async def _find(self, search: SealedSearch, progress: SearchProgress) -> SealedSearchResult | SummaryResult:
        """Return evidence, or the result that the search has without any."""
        searching = self._parts.backend.search(search, self._versions)
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
        outcome = outcome_of(search, result, progress, self._parts.now())
        self._parts.observer.outcome_sent(outcome)
        recording = self._parts.backend.record(search, self._versions, outcome)
        guarded = failure_for_exceptions(recording, Failure.AUDIT_UNAVAILABLE)
        with span_of("safe_summary record"):
            answer = await _in_time(guarded, self._times.outcome_seconds)
        receipt = answer if isinstance(answer, OutcomeReceipt) else OutcomeReceipt(None)
        changed = next((code for code in _CHANGES if code == receipt.reason), None)
        self._parts.observer.outcome_answered(outcome.search_id, receipt, changed)
        if not isinstance(result, Released) or (receipt.recorded and receipt.release):
            return result
        return changed or Failure.AUDIT_UNAVAILABLE


async def _in_time(step: Awaitable[T], seconds: float) -> T | Failure:
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError:
        return Failure.TIMEOUT
