"""Make one summary from evidence: the secondary model writes, the gate judges, and one rewrite is allowed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

import orjson

from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.gate.case import fold_canaries
from chat_shell.sealed.gate.codebook import Codebook
from chat_shell.sealed.gate.typed import TypedCase, choose_areas, judge_codes
from chat_shell.sealed.outcome import SealedSearch, SealedSearchResult, SearchProgress, SummaryResult
from chat_shell.sealed.question_language import ShownEvidence
from chat_shell.sealed.room_observer import RoomObserver
from chat_shell.sealed.secondary_model import SecondaryModel
from chat_shell.sealed.summary_prompt import Rewrite, SummaryPrompt, choose_codes, write_prose
from chat_shell.sealed.verdicts import Blocked, Gate, Judge, Refused, Released, Verdict
from shared.disclosure.everyday import keep_everyday
from shared.models.knowledge_api import WeighedAnswer
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode
from shared.models.values import JsonObject
from shared.tracing import SpanKind, span_of

WINDOW = timedelta(hours=1)


class CanaryCircuit:
    """Opens at `limit` replies with canaries within an hour.

    It counts the replies of this process, also those that could not be recorded; the backend counts those of all
    processes.
    """

    def __init__(self, limit: int, now: Callable[[], datetime]):
        self._limit = limit
        self._now = now
        self._hits: dict[str, deque[datetime]] = {}

    def record_hit(self, model: str) -> None:
        """Remember that a reply of this model held canaries."""
        self._hits.setdefault(model, deque(maxlen=self._limit)).append(self._now())

    def is_open(self, model: str, recorded: int = 0) -> bool:
        """Whether the model must not be asked now; `recorded` is the backend's count of the last hour."""
        hits = self._hits.get(model, ())
        oldest_counted = self._now() - WINDOW
        return max(recorded, sum(hit > oldest_counted for hit in hits)) >= self._limit


_Judging = Callable[[bytes], Awaitable[Verdict | Failure]]

Weigh = Callable[[Released], Awaitable[WeighedAnswer | Failure]]
"""Compares a release by its meaning with what the search has shown."""

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
        codebook: Codebook,
    ):
        self.model_name = model.name
        self.gate_version = gate.version + codebook.version
        self._model = model
        self._gate = gate
        self._circuit = circuit
        self._observer = observer
        self._new_token = new_token
        self._codebook = codebook

    def is_stopped(self, canary_replies: int = 0) -> bool:
        """Whether the model must not be asked now, given the backend's count of its replies with canaries."""
        return self._circuit.is_open(self.model_name, canary_replies)

    async def write(
        self,
        search: SealedSearch,
        evidence: ShownEvidence,
        found: SealedSearchResult,
        weigh: Weigh,
        progress: SearchProgress,
    ) -> SummaryResult:
        """Ask the model, judge its reply, and ask for a rewrite at most once; prose is weighed where the backend does.

        `weigh` is asked of what the gate lets through.
        """
        chunks = evidence.chunks
        progress.chunks_sent = len(chunks)
        self._observer.summary_started(
            search.knowledge_base_ids,
            query_characters=len(search.query),
            found=progress.chunks_found,
            sent=len(chunks),
        )
        ask = self._ask_for_prose if found.areas is None else self._ask_for_codes
        prompt, reply, judge = await ask(search, evidence, found)
        judging = partial(_decide, judge=judge, weigh=weigh if found.is_weighed else None, progress=progress)
        return await self._settle(prompt, reply, judging, progress)

    async def _ask_for_prose(
        self, search: SealedSearch, evidence: ShownEvidence, found: SealedSearchResult
    ) -> tuple[SummaryPrompt, bytes | Failure, Judge]:
        chunks, siblings = evidence.chunks, (*evidence.withheld, *found.siblings)
        asked = keep_everyday(search.query)
        prompt = SummaryPrompt(asked, write_prose(evidence.answer_language), chunks, self._new_token)
        given = chunks, search.user_words, prompt.canaries(), siblings, evidence.language, found.rules
        async with asyncio.TaskGroup() as group:
            # Runs in a thread while the model writes, because the normal forms of many chunks take long to compute.
            preparing = group.create_task(asyncio.to_thread(self._gate.prepare, *given))
            reply = await self._reply(prompt)
        return prompt, reply, preparing.result()

    async def _ask_for_codes(
        self, search: SealedSearch, evidence: ShownEvidence, found: SealedSearchResult
    ) -> tuple[SummaryPrompt, bytes | Failure, Judge]:
        chunks, siblings = evidence.chunks, (*evidence.withheld, *found.siblings)
        named = found.areas or (), search.last_message
        areas = await asyncio.to_thread(choose_areas, *named, (*chunks, *siblings), evidence.language)
        asked = keep_everyday(search.query)
        prompt = SummaryPrompt(asked, choose_codes(self._codebook, areas), chunks, self._new_token)
        case = TypedCase(self._codebook, areas, fold_canaries(prompt.canaries()), evidence.language)
        return prompt, await self._reply(prompt, schema=prompt.schema), partial(judge_codes, case=case)

    async def _settle(
        self, prompt: SummaryPrompt, reply: bytes | Failure, judging: _Judging, progress: SearchProgress
    ) -> SummaryResult:
        """Judge a reply, and ask once more where it is blocked, or where its provider may not know schemas."""
        verdict = await self._verdict(reply, judging, progress)
        if isinstance(verdict, Blocked) and isinstance(reply, bytes):
            rewrite = Rewrite(reply, verdict.codes, verdict.phrases)
            again = partial(self._reply, prompt, rewrite, prompt.schema)
        elif prompt.schema is not None and verdict is Failure.MODEL_UNAVAILABLE:
            again = partial(self._reply, prompt)
        else:
            return _result_of(verdict)
        progress.rewrites += 1
        return _result_of(await self._verdict(await again(), judging, progress))

    async def _reply(
        self, prompt: SummaryPrompt, rewrite: Rewrite | None = None, schema: JsonObject | None = None
    ) -> bytes | Failure:
        messages = prompt.for_model(rewrite)
        body_bytes = len(orjson.dumps(messages))
        self._observer.secondary_asked(self.model_name, prompt.for_operators(rewrite), body_bytes)
        stage = "safe_summary rewrite" if rewrite else "safe_summary secondary_model"
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.model_name}
        with span_of(stage, attributes, SpanKind.CLIENT) as span:
            reply = await failure_for_exceptions(self._model.reply(messages, schema), Failure.MODEL_UNAVAILABLE)
            if isinstance(reply, Failure):
                span.fail(reply.value)
        return reply

    async def _verdict(self, reply: bytes | Failure, judging: _Judging, progress: SearchProgress) -> Verdict | Failure:
        verdict = reply if isinstance(reply, Failure) else await judging(reply)
        size = 0 if isinstance(reply, Failure) else len(reply)
        self._observer.secondary_answered(self.model_name, size, _decision(verdict))
        if isinstance(verdict, Blocked):
            progress.gate_codes += verdict.codes
            progress.canary_hits += verdict.canary_hits
            if verdict.canary_hits:
                self._circuit.record_hit(self.model_name)
        return verdict


async def _decide(reply: bytes, judge: Judge, weigh: Weigh | None, progress: SearchProgress) -> Verdict | Failure:
    with span_of("safe_summary gate") as span:
        verdict = await failure_for_exceptions(asyncio.to_thread(judge, reply), Failure.INVALID_OUTPUT)
        span.set({"ballast.safe_summary.decision": _decision(verdict)})
    if weigh is None or not isinstance(verdict, Released):
        return verdict
    with span_of("safe_summary weigh"):
        weighed = await failure_for_exceptions(weigh(verdict), Failure.MODEL_UNAVAILABLE)
    if isinstance(weighed, Failure):
        return weighed
    progress.facts = weighed.facts
    return Blocked((GateCode.CONTAINMENT,), phrases=weighed.retold) if weighed.retold else verdict


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
