"""The sealed room: from a query to a released summary, or to nothing. What is refused, and why, is a code."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from chat_shell.sealed.backend_wire import Recorded, SealedBackend
from chat_shell.sealed.circuit import CanaryCircuit
from chat_shell.sealed.outcome import Ending, Found, Outcome, SealedAsk, Tally, outcome_of
from chat_shell.sealed.pre_screen import pre_screen
from chat_shell.sealed.released import Released
from chat_shell.sealed.rim import sealed
from chat_shell.sealed.secondary_model import SecondaryModel
from chat_shell.sealed.summary_prompt import SummaryPrompt
from chat_shell.sealed.verdicts import CaseT, Gate
from chat_shell.sealed.watch import OutcomeAnswered, OutcomeSent, RoomObserver, SummaryCompleted
from chat_shell.sealed.writing import Pen, Writing, sendable
from shared.models.execution import remaining_seconds
from shared.models.safe_summary import Failure, SummaryVersions
from shared.prompts.safe_summary import PROMPT_VERSION

T = TypeVar("T")

POLICY_VERSION = "3"
"""Of the pre-screen's and the room's rules; part of what a kept summary depends on."""

OUTCOME_TIMEOUT_SECONDS = 5.0
"""For recording, behind the time of the summary itself: a timeout is to be recorded, too."""

NO_MODEL = "none"
"""In the audit, where no secondary model is configured."""

_MOVED = (Failure.ACCESS_CHANGED, Failure.BASE_CHANGED, Failure.PAUSED)


@dataclass(frozen=True, slots=True)
class RoomTimes:
    """How long a safe summary may take, and how an outcome's record after it."""

    summary_seconds: float
    outcome_seconds: float = OUTCOME_TIMEOUT_SECONDS

    @property
    def longest_seconds(self) -> float:
        """The longest that `summarise` takes."""
        return self.summary_seconds + self.outcome_seconds


@dataclass(frozen=True, slots=True)
class RoomParts(Generic[CaseT]):
    """What the room is made of. `now` is the clock; `new_token` makes canaries."""

    backend: SealedBackend
    model: SecondaryModel | None
    gate: Gate[CaseT]
    circuit: CanaryCircuit
    now: Callable[[], datetime]
    new_token: Callable[[], str]


class SealedRoom(Generic[CaseT]):
    """Answers restricted searches; one instance serves all turns at once."""

    def __init__(self, parts: RoomParts[CaseT], times: RoomTimes, observer: RoomObserver):
        self._parts = parts
        self._times = times
        self._observer = observer
        self._versions = SummaryVersions(
            policy_version=POLICY_VERSION,
            gate_version=parts.gate.version,
            prompt_version=PROMPT_VERSION,
            model=NO_MODEL if parts.model is None else parts.model.name,
        )

    async def summarise(self, ask: SealedAsk) -> Released | None:
        """Return a summary whose outcome is recorded, or None, whatever the cause. Only cancellation is raised."""
        tally = Tally(started_at=self._parts.now())
        # what is left of the turn is for recording, too: a timeout is an outcome
        left_seconds = remaining_seconds(ask.deadline, tally.started_at) - self._times.outcome_seconds
        deciding = sealed(self._decided(ask, tally), Failure.INVALID_OUTPUT)
        ending = await _in_time(deciding, max(0.0, min(self._times.summary_seconds, left_seconds)))
        if not tally.is_audited:
            ending = await self._recorded(ask, ending, tally)
        self._observer.summary_completed(_completed(outcome_of(ask, ending, tally, self._parts.now())))
        return ending if isinstance(ending, Released) else None

    async def _decided(self, ask: SealedAsk, tally: Tally) -> Ending:
        # in a thread: a message of the largest size takes it half a second
        refusal = await asyncio.to_thread(pre_screen, ask.last_message, ask.query)
        model, circuit = self._parts.model, self._parts.circuit
        if refusal is not None or model is None:
            return refusal or Failure.MODEL_UNAVAILABLE
        if circuit.is_open(model.name):
            return Failure.CIRCUIT_OPEN
        found = await self._found(ask, tally)
        if not isinstance(found, Found):
            return found
        if circuit.is_open(model.name, found.canary_replies):
            return Failure.CIRCUIT_OPEN
        chunks = sendable(found.chunks)
        prompt = SummaryPrompt(ask.query, chunks, self._parts.new_token)
        pen = Pen(model, self._parts.gate, circuit, self._observer)
        return await Writing(pen, prompt, tally).ending(ask, chunks, found.siblings)

    async def _found(self, ask: SealedAsk, tally: Tally) -> Found | Ending:
        """Return evidence, or how the search has ended without it."""
        found = await sealed(self._parts.backend.search(ask, self._versions), Failure.AUDIT_UNAVAILABLE)
        if isinstance(found, Failure):
            tally.is_audited = found is Failure.BAD_TICKET
            return found
        tally.search_id = found.search_id
        tally.chunks_found = len(found.chunks)
        ending = found.refusal or found.released
        tally.is_audited = ending is not None
        return ending or (found if found.chunks else Failure.INSUFFICIENT_EVIDENCE)

    async def _recorded(self, ask: SealedAsk, ending: Ending, tally: Tally) -> Ending:
        """Have an ending recorded; without a record, or when access or base have moved, nothing is released."""
        outcome = outcome_of(ask, ending, tally, self._parts.now())
        self._observer.outcome_sent(OutcomeSent(outcome.search_id, _completed(outcome)))
        recording = sealed(self._parts.backend.record(ask, self._versions, outcome), Failure.AUDIT_UNAVAILABLE)
        told = await _in_time(recording, self._times.outcome_seconds)
        answer = told if isinstance(told, Recorded) else Recorded(None)
        moved = next((code for code in _MOVED if code == answer.reason), None)
        self._observer.outcome_answered(
            OutcomeAnswered(outcome.search_id, answer.status, answer.recorded, answer.release, moved)
        )
        if not isinstance(ending, Released) or (answer.recorded and answer.release):
            return ending
        return moved or Failure.AUDIT_UNAVAILABLE


async def _in_time(step: Awaitable[T], seconds: float) -> T | Failure:
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError:
        return Failure.TIMEOUT


def _completed(outcome: Outcome) -> SummaryCompleted:
    return SummaryCompleted(
        knowledge_base_ids=outcome.knowledge_base_ids,
        decision=outcome.decision,
        reason=outcome.reason,
        gate_codes=outcome.gate_codes,
        rewrites=outcome.rewrites,
        canary_hits=outcome.canary_hits,
        latency_ms=outcome.latency_ms,
        preview=outcome.preview,
    )
