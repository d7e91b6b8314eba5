"""Having a model summarise what is left out of a conversation, in an execution of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from backend.conversations.domain.conversation_log import Entry
from backend.foundation.services.supervision import result_or_error
from backend.prompt.domain.truncation import Truncation, summary_limit_tokens
from backend.prompt.domain.turn_calls import SummaryCall
from backend.restricted.services.outgoing_scan import OutgoingTexts
from backend.turns.domain.summary_request import (
    SummaryRequest,
    excerpts_of,
    summary_request,
    summary_room_tokens,
    until_at_most,
)
from backend.turns.ports.observer import CompactionOutcome
from backend.turns.services.run.execution_reader import ExecutionReader
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, DeadlineExceeded, Unavailable
from shared.models.events import (
    Cost,
    ExecutionEvent,
    FinishReason,
    ModelCallFinished,
    ModelCard,
    RefusalDelta,
    TextDelta,
    TurnFailed,
    TurnFinished,
    Usage,
)
from shared.models.execution import AccessMode, ExecutionRequest
from shared.tokens import estimate_tokens

SUMMARY_SECONDS = 60.0
"""The turn waits for its summary; without one it goes on with a notice."""

LONGEST_OF_LIMIT = 2
"""How many times the limit a summary may have by our estimate, which for some languages is that much too high."""


class Summary(NamedTuple):
    """A summary, or None and why there is none."""

    text: str | None
    outcome: CompactionOutcome


class SummaryRecord(Protocol):
    """The log of a conversation, and where the calls are recorded that make a summary of it."""

    @property
    def log(self) -> Sequence[Entry]:
        """The entries so far."""
        ...

    def add_summary(self, made: SummaryCall) -> None:
        """Record a call."""
        ...


@dataclass
class _Answer:
    """What an execution has said."""

    text: str = ""
    is_refused: bool = False
    is_whole: bool = False
    failed_with: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None

    def feed(self, event: ExecutionEvent) -> None:
        match event:
            case TextDelta():
                self.text += event.text
            case RefusalDelta():
                self.is_refused = True
            case ModelCallFinished():
                self.usage, self.cost = event.usage, event.cost
            case TurnFinished():
                self.is_whole = True
                self.is_refused = self.is_refused or event.finish_reason is FinishReason.CONTENT_FILTER
            case TurnFailed():
                self.failed_with = event.error.type
            case _:
                """Nothing else belongs to a summary."""


class Summarise:
    """Summarises for one turn; its calls are recorded with those of the turn, and their usage is the turn's.

    Unless a summary `may_be_longer` than what it replaces, such a one is none.
    """

    def __init__(
        self,
        ports: TurnPorts,
        reader: ExecutionReader,
        record: SummaryRecord,
        card: ModelCard,
        *,
        may_be_longer: bool = False,
    ) -> None:
        self._ports = ports
        self._reader = reader
        self._record = record
        self._card = card
        self._may_be_longer = may_be_longer

    async def __call__(self, request: ExecutionRequest, left_out: Truncation) -> Summary:
        """Summarise what `request`, the next of the turn, is going to leave out."""
        limit = summary_limit_tokens(self._card)
        excerpts = excerpts_of(left_out, summary_room_tokens(request, self._card), limit)
        if not excerpts:
            return Summary(None, CompactionOutcome.TOO_LONG)
        latest = self._ports.clock.now() + timedelta(seconds=SUMMARY_SECONDS)
        summary = Summary(None, CompactionOutcome.FAILED)
        for excerpt in excerpts:
            asked = summary_request(request, self._record.log, excerpt, limit, summary.text)
            answer = await self._answer(asked._replace(request=until_at_most(asked.request, latest)))
            summary = self._judge(answer, left_out, limit)
            if summary.text is None:
                return summary
        return await self._check(request, summary)

    async def _answer(self, asked: SummaryRequest) -> _Answer:
        answer = _Answer()
        error = await result_or_error(self._read(asked.request, answer))
        if not answer.is_whole and isinstance(error, BallastError) and answer.failed_with is None:
            answer.failed_with = type(error).__name__
        elif error is not None and not isinstance(error, BallastError):
            self._ports.observer.turn_broke(asked.request.turn_id, error)
        if answer.usage is not None:
            call = SummaryCall(
                request=asked.request,
                epoch=asked.request.epoch,
                log_end=len(self._record.log),
                summary_of=asked.excerpt,
                tail=asked.tail,
                usage=answer.usage,
                cost=answer.cost,
            )
            self._record.add_summary(call)
        return answer

    async def _read(self, request: ExecutionRequest, answer: _Answer) -> BallastError | None:
        execution = self._reader.start(request)
        while batch := await execution.take():
            for event in batch:
                answer.feed(event)
        return execution.error

    def _judge(self, answer: _Answer, left_out: Truncation, limit_tokens: int) -> Summary:
        tokens = estimate_tokens(answer.text)
        if answer.failed_with == DeadlineExceeded.__name__:
            return Summary(None, CompactionOutcome.TIMED_OUT)
        if not answer.is_whole:
            return Summary(None, CompactionOutcome.FAILED)
        if answer.is_refused:
            return Summary(None, CompactionOutcome.REFUSED)
        if not answer.text.strip():
            return Summary(None, CompactionOutcome.EMPTY)
        is_longer = tokens >= left_out.tokens and not self._may_be_longer
        if is_longer or tokens > LONGEST_OF_LIMIT * limit_tokens:
            return Summary(None, CompactionOutcome.TOO_LONG)
        return Summary(answer.text, CompactionOutcome.SUMMARISED)

    async def _check(self, request: ExecutionRequest, summary: Summary) -> Summary:
        """Keep of a restricted turn's summary what its answers may show, too: prompts are shown to its user."""
        knowledge = request.knowledge
        if summary.text is None or knowledge.access_mode is AccessMode.FULL:
            return summary
        bases = tuple(base.id for base in knowledge.bases if base.access_mode is not AccessMode.FULL)
        check = OutgoingTexts(self._ports.outgoing).let_pass
        try:
            passed = await check(
                (summary.text,), user_id=request.user.id, user_words=knowledge.user_words, base_ids=bases
            )
        except Unavailable:
            return Summary(None, CompactionOutcome.FAILED)
        return Summary(None, CompactionOutcome.WITHHELD) if passed is None else summary._replace(text=passed[0])
