"""From evidence to a verdict: the secondary model writes, the gate judges, and one rewrite is allowed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import orjson

from chat_shell.sealed.backend_wire import MAX_CHUNKS
from chat_shell.sealed.circuit import CanaryCircuit
from chat_shell.sealed.outcome import Ending, SealedAsk, Tally
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.released import Released
from chat_shell.sealed.rim import sealed
from chat_shell.sealed.secondary_model import SecondaryModel
from chat_shell.sealed.summary_prompt import SummaryPrompt
from chat_shell.sealed.verdicts import Blocked, CaseT, Gate, Refused, Verdict
from chat_shell.sealed.watch import ModelAnswered, ModelAsked, RoomObserver, SummaryStarted
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode

BLOCKED = "blocked"
"""In the log: a reply that the gate kept."""


@dataclass(frozen=True, slots=True)
class Pen(Generic[CaseT]):
    """Who writes, who judges, and who counts the canaries."""

    model: SecondaryModel
    gate: Gate[CaseT]
    circuit: CanaryCircuit
    observer: RoomObserver


class Writing(Generic[CaseT]):
    """The writing of one summary."""

    def __init__(self, pen: Pen[CaseT], prompt: SummaryPrompt, tally: Tally):
        self._pen = pen
        self._prompt = prompt
        self._tally = tally

    async def ending(
        self, ask: SealedAsk, chunks: Sequence[ProtectedChunk], siblings: Sequence[ProtectedChunk]
    ) -> Ending:
        """Write, judge, and rewrite at most once."""
        self._tally.chunks_sent = len(chunks)
        self._pen.observer.summary_started(
            SummaryStarted(ask.knowledge_base_ids, len(ask.query), self._tally.chunks_found, len(chunks))
        )
        canaries = self._prompt.canaries()
        async with asyncio.TaskGroup() as group:
            # in a thread, and while the model writes: normal forms of so many chunks take their time
            preparing = group.create_task(
                asyncio.to_thread(self._pen.gate.prepare, chunks, ask.user_words, canaries, siblings)
            )
            reply = await self._reply(())
        case = preparing.result()
        verdict = await self._verdict(reply, case)
        if isinstance(verdict, Blocked):
            self._tally.rewrites += 1
            verdict = await self._verdict(await self._reply(verdict.codes), case)
        return _ending(verdict)

    async def _reply(self, failed: Sequence[GateCode]) -> bytes | Failure:
        messages = self._prompt.for_model(failed)
        body_bytes = len(orjson.dumps(messages))
        model = self._pen.model
        self._pen.observer.model_asked(ModelAsked(model.name, self._prompt.for_operators(failed), body_bytes))
        return await sealed(model.reply(messages), Failure.MODEL_UNAVAILABLE)

    async def _verdict(self, reply: bytes | Failure, case: CaseT) -> Verdict | Failure:
        verdict = reply if isinstance(reply, Failure) else await self._judged(reply, case)
        size = 0 if isinstance(reply, Failure) else len(reply)
        self._pen.observer.model_answered(ModelAnswered(self._pen.model.name, size, _decision(verdict)))
        if isinstance(verdict, Blocked):
            self._count(verdict)
        return verdict

    async def _judged(self, reply: bytes, case: CaseT) -> Verdict | Failure:
        return await sealed(asyncio.to_thread(self._pen.gate.judge, reply, case), Failure.INVALID_OUTPUT)

    def _count(self, blocked: Blocked) -> None:
        self._tally.gate_codes += blocked.codes
        self._tally.canary_hits += blocked.canary_hits
        if blocked.canary_hits:
            self._pen.circuit.record_hit(self._pen.model.name)


def sendable(chunks: Sequence[ProtectedChunk]) -> tuple[ProtectedChunk, ...]:
    """Return the chunks that may be sent: no more than were asked for."""
    return tuple(chunks[:MAX_CHUNKS])


def _decision(verdict: Verdict | Failure) -> str:
    match verdict:
        case Released():
            return Decision.ANSWER.value
        case Refused():
            return Decision.REFUSE.value
        case Blocked():
            return BLOCKED
        case _:
            return verdict.value


def _ending(verdict: Verdict | Failure) -> Ending:
    match verdict:
        case Refused(reason):
            return reason
        case Blocked(codes):
            first = next((code for code in GateCode if code in codes), GateCode.SCHEMA)
            return Failure.INVALID_OUTPUT if first is GateCode.SCHEMA else GateBlock[first.name]
        case _:
            return verdict
