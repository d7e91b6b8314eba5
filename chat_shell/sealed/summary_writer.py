"""Make one summary from evidence: the secondary model writes, the gate judges, and one rewrite is allowed."""

import asyncio
from collections.abc import Callable, Sequence

import orjson

from chat_shell.sealed.circuit import CanaryCircuit
from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.outcome import SealedSearch, SearchProgress, SummaryResult
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.question_language import ShownEvidence
from chat_shell.sealed.released import Released
from chat_shell.sealed.room_observer import RoomObserver
from chat_shell.sealed.secondary_model import SecondaryModel
from chat_shell.sealed.summary_prompt import Rewrite, SummaryPrompt
from chat_shell.sealed.verdicts import Blocked, Gate, Judge, Refused, Verdict
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode
from shared.tracing import SpanKind, span_of

BLOCKED = "blocked"
"""What the log calls a reply that the gate blocked."""


class SummaryWriter:
    """Makes summaries: a first reply and, where the gate blocks that, one rewrite.

    `new_token` makes the markers and canaries of prompts.
    """

    def __init__(
        self,
        model: SecondaryModel,
        gate: Gate,
        circuit: CanaryCircuit,
        observer: RoomObserver,
        new_token: Callable[[], str],
    ):
        self.model_name = model.name
        self.gate_version = gate.version
        self._model = model
        self._gate = gate
        self._circuit = circuit
        self._observer = observer
        self._new_token = new_token

    def is_stopped(self, canary_replies: int = 0) -> bool:
        """Whether the model must not be asked now, given the backend's count of its replies with canaries."""
        return self._circuit.is_open(self.model_name, canary_replies)

    async def write(
        self,
        search: SealedSearch,
        evidence: ShownEvidence,
        siblings: Sequence[ProtectedChunk],
        progress: SearchProgress,
    ) -> SummaryResult:
        """Ask the model, judge its reply, and ask for a rewrite at most once."""
        chunks = evidence.chunks
        progress.chunks_sent = len(chunks)
        self._observer.summary_started(
            search.knowledge_base_ids,
            query_characters=len(search.query),
            found=progress.chunks_found,
            sent=len(chunks),
        )
        prompt = SummaryPrompt(search.query, evidence.answer_language, chunks, self._new_token)
        given = chunks, search.user_words, prompt.canaries(), siblings, evidence.language
        async with asyncio.TaskGroup() as group:
            # Runs in a thread while the model writes, because the normal forms of many chunks take long to compute.
            preparing = group.create_task(asyncio.to_thread(self._gate.prepare, *given))
            reply = await self._reply(prompt)
        judge = preparing.result()
        verdict = await self._verdict(reply, judge, progress)
        if isinstance(verdict, Blocked) and isinstance(reply, bytes):
            progress.rewrites += 1
            again = await self._reply(prompt, Rewrite(reply, verdict.codes, verdict.phrases))
            verdict = await self._verdict(again, judge, progress)
        return _result_of(verdict)

    async def _reply(self, prompt: SummaryPrompt, rewrite: Rewrite | None = None) -> bytes | Failure:
        messages = prompt.for_model(rewrite)
        body_bytes = len(orjson.dumps(messages))
        self._observer.secondary_asked(self.model_name, prompt.for_operators(rewrite), body_bytes)
        stage = "safe_summary rewrite" if rewrite else "safe_summary secondary_model"
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.model_name}
        with span_of(stage, attributes, SpanKind.CLIENT) as span:
            reply = await failure_for_exceptions(self._model.reply(messages), Failure.MODEL_UNAVAILABLE)
            if isinstance(reply, Failure):
                span.fail(reply.value)
        return reply

    async def _verdict(self, reply: bytes | Failure, judge: Judge, progress: SearchProgress) -> Verdict | Failure:
        verdict = reply if isinstance(reply, Failure) else await _judged(reply, judge)
        size = 0 if isinstance(reply, Failure) else len(reply)
        self._observer.secondary_answered(self.model_name, size, _decision(verdict))
        if isinstance(verdict, Blocked):
            progress.gate_codes += verdict.codes
            progress.canary_hits += verdict.canary_hits
            if verdict.canary_hits:
                self._circuit.record_hit(self.model_name)
        return verdict


async def _judged(reply: bytes, judge: Judge) -> Verdict | Failure:
    with span_of("safe_summary gate") as span:
        verdict = await failure_for_exceptions(asyncio.to_thread(judge, reply), Failure.INVALID_OUTPUT)
        span.set({"ballast.safe_summary.decision": _decision(verdict)})
    return verdict


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
