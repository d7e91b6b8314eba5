"""Make one summary from evidence: the secondary model writes, the gate judges, and one rewrite is allowed."""

import asyncio
from collections.abc import Sequence
from typing import Generic

import orjson

from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.outcome import SealedSearch, SearchProgress, SummaryResult
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.question_language import ShownEvidence
from chat_shell.sealed.released import Released
from chat_shell.sealed.room_parts import RoomParts
from chat_shell.sealed.summary_prompt import Rewrite, SummaryPrompt
from chat_shell.sealed.verdicts import Blocked, CaseT, Refused, Verdict
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode
from shared.tracing import SpanKind, span_of

BLOCKED = "blocked"
"""What the log calls a reply that the gate blocked."""


class SummaryAttempt(Generic[CaseT]):
    """One summary: its first reply and, where the gate blocks that, one rewrite."""

    def __init__(self, parts: RoomParts[CaseT], prompt: SummaryPrompt, progress: SearchProgress):
        self._parts = parts
        self._prompt = prompt
        self._progress = progress

    async def run(
        self, search: SealedSearch, evidence: ShownEvidence, siblings: Sequence[ProtectedChunk]
    ) -> SummaryResult:
        """Ask the model, judge its reply, and ask for a rewrite at most once."""
        chunks = evidence.chunks
        self._progress.chunks_sent = len(chunks)
        self._parts.observer.summary_started(
            search.knowledge_base_ids,
            query_characters=len(search.query),
            found=self._progress.chunks_found,
            sent=len(chunks),
        )
        canaries = self._prompt.canaries()
        async with asyncio.TaskGroup() as group:
            # Runs in a thread while the model writes, because the normal forms of many chunks take long to compute.
            preparing = group.create_task(
                asyncio.to_thread(
                    self._parts.gate.prepare, chunks, search.user_words, canaries, siblings, evidence.language
                )
            )
            reply = await self._reply()
        case = preparing.result()
        verdict = await self._verdict(reply, case)
        if isinstance(verdict, Blocked) and isinstance(reply, bytes):
            self._progress.rewrites += 1
            verdict = await self._verdict(await self._reply(Rewrite(reply, verdict.codes, verdict.phrases)), case)
        return _result_of(verdict)

    async def _reply(self, rewrite: Rewrite | None = None) -> bytes | Failure:
        messages = self._prompt.for_model(rewrite)
        body_bytes = len(orjson.dumps(messages))
        model = self._parts.model
        self._parts.observer.secondary_asked(model.name, self._prompt.for_operators(rewrite), body_bytes)
        stage = "safe_summary rewrite" if rewrite else "safe_summary secondary_model"
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model.name}
        with span_of(stage, attributes, SpanKind.CLIENT) as span:
            reply = await failure_for_exceptions(model.reply(messages), Failure.MODEL_UNAVAILABLE)
            if isinstance(reply, Failure):
                span.fail(reply.value)
        return reply

    async def _verdict(self, reply: bytes | Failure, case: CaseT) -> Verdict | Failure:
        verdict = reply if isinstance(reply, Failure) else await self._judged(reply, case)
        size = 0 if isinstance(reply, Failure) else len(reply)
        self._parts.observer.secondary_answered(self._parts.model.name, size, _decision(verdict))
        if isinstance(verdict, Blocked):
            self._count(verdict)
        return verdict

    async def _judged(self, reply: bytes, case: CaseT) -> Verdict | Failure:
        judging = asyncio.to_thread(self._parts.gate.judge, reply, case)
        with span_of("safe_summary gate") as span:
            verdict = await failure_for_exceptions(judging, Failure.INVALID_OUTPUT)
            span.set({"ballast.safe_summary.decision": _decision(verdict)})
        return verdict

    def _count(self, blocked: Blocked) -> None:
        self._progress.gate_codes += blocked.codes
        self._progress.canary_hits += blocked.canary_hits
        if blocked.canary_hits:
            self._parts.circuit.record_hit(self._parts.model.name)


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


def _result_of(verdict: Verdict | Failure) -> SummaryResult:
    match verdict:
        case Refused(reason):
            return reason
        case Blocked(codes):
            first = next((code for code in GateCode if code in codes), GateCode.SCHEMA)
            return Failure.INVALID_OUTPUT if first is GateCode.SCHEMA else GateBlock[first.name]
        case _:
            return verdict
