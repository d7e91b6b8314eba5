"""Run a turn: a loop that takes the steps that `decide` names and gives their results to `record`."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from chat_shell.knowledge.domain.citations import CitedDocument
from chat_shell.knowledge.domain.documents import DocumentNumbers, numbers_in
from chat_shell.models.ports import Model, ModelCall, ModelDirectory
from chat_shell.tools.domain.tool_calls import call_ids
from chat_shell.tools.domain.written_calls import holds_written_call
from chat_shell.tools.ports.tools import ToolContext
from chat_shell.turns.domain.limits import (
    KnowledgeAllowance,
    knowledge_calls_in,
    result_tokens,
    used_tokens,
)
from chat_shell.turns.domain.repetition import EarlierCalls
from chat_shell.turns.domain.turn import (
    CallModel,
    Finish,
    RunTools,
    ToolsAnswered,
    TurnState,
    YieldForCompaction,
    decide,
    left_out_of,
    record,
)
from chat_shell.turns.ports import TurnObserver
from chat_shell.turns.services.model_answer import PartialAnswer, fragments_of
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.streamed_calls import StreamedCalls
from chat_shell.turns.services.tool_round import (
    finish_round,
    hidden,
    searches_started,
    served_started,
    without_repeated,
)
from shared.clock import Clock
from shared.errors import BallastError, DeadlineExceeded
from shared.models.error_reports import report_of
from shared.models.events import (
    ExecutionEvent,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
)
from shared.models.execution import AccessMode, ExecutionRequest, Purpose, ToolDefinition
from shared.models.messages import AssistantMessage, Message
from shared.prompts.message_order import context_index, messages_of_request
from shared.prompts.tool_results import MAX_TOOL_RESULT_TOKENS
from shared.retries import RetryPolicy

CANCELLED = "cancelled"
HANDED_BACK = "handed_back"


@dataclass(frozen=True, slots=True)
class TurnDefaults:
    """Settings of turns, and the limits of those whose request names none."""

    retry: RetryPolicy
    max_model_calls: int = 12
    max_tool_result_tokens: int = MAX_TOOL_RESULT_TOKENS


@dataclass(slots=True)
class _Turn:
    """A running turn: its fixed parts, and the values that each step replaces."""

    request: ExecutionRequest
    model: Model
    context: ToolContext
    tools: tuple[ToolDefinition, ...]
    state: TurnState
    numbers: DocumentNumbers
    knowledge_calls_left: int
    partial_answer: PartialAnswer | None = None

    @property
    def is_full(self) -> bool:
        """Whether the turn has full access to all its knowledge bases."""
        return self.request.knowledge.access_mode is AccessMode.FULL


class RunTurn:
    """Runs turns; one instance runs any number of them at the same time."""

    def __init__(
        self,
        models: ModelDirectory,
        toolbox: Toolbox,
        clock: Clock,
        observer: TurnObserver,
        defaults: TurnDefaults,
    ):
        self._models = models
        self._clock = clock
        self._observer = observer
        self._defaults = defaults
        self._toolbox = toolbox

    async def __call__(self, request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        """Run a turn and yield its events; closing the generator cancels model and tools.

        A failure after the first event is not raised but yielded as `TurnFailed`.

        Raises:
            UnknownModel: before the first event.
            InvalidRequest: before the first event; `param` names the field.
        """
        turn = self._open(request)
        with _TurnReporter(self._observer, turn) as reporter:
            async with aclosing(self._events(turn)) as events:
                async for event in events:
                    reporter.note(event)
                    yield event

    def _open(self, request: ExecutionRequest) -> _Turn:
        card = self._models.card(request.model)
        prompt = messages_of_request(request)
        full = request.knowledge.access_mode is AccessMode.FULL
        numbers = numbers_in(prompt)
        return _Turn(
            request=request,
            model=self._models.model(request.model),
            context=ToolContext(
                request=request, card=card, result_tokens=result_tokens(card, self._defaults.max_tool_result_tokens)
            ),
            tools=self._toolbox.offered(request),
            state=_first_state(request, prompt, self._defaults.max_model_calls),
            numbers=(numbers if full else numbers.without_documents()).joined(numbers_in(request.added)),
            knowledge_calls_left=max(0, request.limits.max_knowledge_calls - knowledge_calls_in(request.added)),
        )

    async def _events(self, turn: _Turn) -> AsyncGenerator[ExecutionEvent]:
        try:
            async with aclosing(self._steps(turn)) as events:
                async for event in events:
                    yield event
        except BallastError as error:
            for event in _events_of_failed_call(turn):
                yield event
            yield TurnFailed(error=report_of(error), usage=turn.state.usage)

    async def _steps(self, turn: _Turn) -> AsyncGenerator[ExecutionEvent]:
        while not isinstance(step := decide(turn.state), Finish | YieldForCompaction):
            added_before = len(turn.state.added)
            events = self._call_model(turn, step) if isinstance(step, CallModel) else self._run_tools(turn, step)
            async with aclosing(events):
                async for event in events:
                    yield event
            added = turn.state.added[added_before:]
            if added:
                yield MessagesAdded(messages=tuple(one for one in added if one.role != "user"))
        if isinstance(step, YieldForCompaction):
            yield TurnHandedBack(prompt_tokens=step.prompt_tokens, usage=turn.state.usage)
        elif isinstance(step.outcome, BallastError):
            raise step.outcome
        else:
            yield TurnFinished(finish_reason=step.outcome, usage=turn.state.usage)

    async def _call_model(self, turn: _Turn, step: CallModel) -> AsyncGenerator[ExecutionEvent]:
        if self._clock.now() >= turn.request.deadline:
            raise DeadlineExceeded("the turn took longer than it may")
        answer = turn.partial_answer = PartialAnswer(_citable(turn), callable_tools=_callable(turn, step))
        yield ModelCallStarted(call=step.number, reminder=step.reminder)
        fragments = fragments_of(
            turn.model,
            _model_call(turn, step),
            turn.request.deadline,
            clock=self._clock,
            retry=self._defaults.retry,
            streamed_calls=partial(StreamedCalls, _streamable(turn, step), call_ids(turn.state.added)),
        )
        async with aclosing(fragments):
            async for fragment in fragments:
                for event in answer.feed(fragment):
                    yield event
                if answer.is_cut:
                    break
        observation = answer.finished()
        for event in answer.flush():
            yield event
        turn.partial_answer = None
        turn.state = record(turn.state, observation)
        yield ModelCallFinished(
            call=step.number,
            finish_reason=observation.finish_reason,
            usage=observation.usage,
            cost=observation.cost,
            left_out=left_out_of(turn.state, observation),
        )

    async def _run_tools(self, turn: _Turn, step: RunTools) -> AsyncGenerator[ExecutionEvent]:
        allowance = _allowance(turn)
        calls, allowance = self._toolbox.admit(step.own, turn.context, allowance)
        calls = without_repeated(calls, EarlierCalls(turn.state.added))
        for event in searches_started(calls):
            yield event
        for event in served_started(calls):
            yield event if turn.is_full else hidden(event)
        answers = await self._toolbox.run(calls, turn.context)
        ended = finish_round(calls, answers, turn.numbers, allowance, turn.context.result_tokens)
        for event in ended.ended:
            yield event if turn.is_full else hidden(event)
        for call in step.client:
            yield FunctionCallRequested(call_id=call.call_id, name=call.name, arguments=call.arguments)
        turn.numbers = ended.numbers
        turn.knowledge_calls_left = ended.allowance.calls_left
        turn.state = record(turn.state, ToolsAnswered(ended.messages))


class _TurnReporter:
    """Reports the start of a turn to the observer, and its end, whichever way it ends."""

    def __init__(self, observer: TurnObserver, turn: _Turn):
        self._observer = observer
        self._turn = turn
        self._outcome = CANCELLED

    def __enter__(self) -> Self:
        self._observer.turn_started(self._turn.request)
        return self

    def note(self, event: ExecutionEvent) -> None:
        if isinstance(event, TurnFinished):
            self._outcome = event.finish_reason.value
        elif isinstance(event, TurnHandedBack):
            self._outcome = HANDED_BACK
        elif isinstance(event, TurnFailed):
            self._outcome = event.error.type

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        defect = isinstance(error, Exception)  # cancellation and the closing of the generator are no defects
        outcome = type(error).__name__ if defect else self._outcome
        self._observer.turn_finished(self._turn.request, outcome, self._turn.state.usage)


def _first_state(request: ExecutionRequest, prompt: tuple[Message, ...], default_calls: int) -> TurnState:
    """Return the state in which an execution begins; a summary is one model call, and no tool is run for it."""
    calls_before = sum(isinstance(message, AssistantMessage) for message in request.added)
    is_summary = request.purpose is Purpose.SUMMARY
    return TurnState(
        prompt=prompt,
        added=request.added,
        model_calls=calls_before,
        client_functions=frozenset(function.name for function in request.tools),
        tool_choice="none" if is_summary else request.parameters.tool_choice,
        max_model_calls=calls_before + 1 if is_summary else request.limits.max_model_calls or default_calls,
        demands_function=_demands_function(request),
        purpose=request.purpose,
        agents_reminder=request.reminder,
        hand_back_tokens=request.limits.hand_back_tokens,
    )


def _citable(turn: _Turn) -> Mapping[int, CitedDocument] | None:
    """Return the documents that an answer may cite; None where its text stays as it is.

    That is so of summaries, and of JSON that the client has asked for: its lists of numbers are no citations.
    """
    text_format = turn.request.parameters.text_format
    is_json = text_format is not None and text_format.get("type") != "text"
    return None if is_json or turn.request.purpose is Purpose.SUMMARY else turn.numbers.documents


def _callable(turn: _Turn, step: CallModel) -> Collection[str]:
    """Return the tools of which an answer may be calls in the form of text, which is read so once a turn."""
    if step.tool_choice == "none" or holds_written_call(turn.state.added):
        return ()
    return frozenset(tool.name for tool in turn.tools)


def _streamable(turn: _Turn, step: CallModel) -> frozenset[str]:
    """Return the functions of which the client gets calls as they are written.

    Restricted turns are scanned first. Where knowledge may be searched, searches are shown before the client's calls.
    """
    may_stream = turn.is_full and step.tool_choice != "none" and not turn.request.knowledge.bases
    return turn.state.client_functions if may_stream else frozenset()


def _demands_function(request: ExecutionRequest) -> bool:
    """Whether `required` demands a function of the client.

    The knowledge tools are always offered, but without a knowledge base they have nothing to read.
    """
    return request.parameters.tool_choice == "required" and bool(request.tools) and not request.knowledge.bases


def _model_call(turn: _Turn, step: CallModel) -> ModelCall:
    parameters, is_answer = turn.request.parameters, turn.request.purpose is Purpose.ANSWER
    # What could have stood in the place of a word tells what a withheld text says.
    top_logprobs = parameters.top_logprobs if turn.is_full and is_answer else None
    return ModelCall(
        model=turn.request.model,
        messages=step.messages,
        tools=turn.tools,
        parameters=parameters.model_copy(update={"tool_choice": step.tool_choice, "top_logprobs": top_logprobs}),
        cache_key=turn.request.cache_key,
        stored=context_index(turn.request),
        reminder=step.reminder,
        purpose=turn.request.purpose,
    )


def _allowance(turn: _Turn) -> KnowledgeAllowance:
    answer = turn.state.answer or AssistantMessage(text="")
    return KnowledgeAllowance(
        calls_left=turn.knowledge_calls_left,
        budget_tokens=turn.context.card.input_budget_tokens,
        used_tokens=used_tokens(turn.state.messages, answer, turn.state.last_usage),
    )


def _events_of_failed_call(turn: _Turn) -> tuple[ExecutionEvent, ...]:
    """Return the text of a model call that failed midway: the part held back from the client, and the log's message."""
    if turn.partial_answer is None:
        return ()
    held_back = turn.partial_answer.flush()
    if not turn.partial_answer.text:
        return held_back
    return (*held_back, MessagesAdded(messages=(AssistantMessage(text=turn.partial_answer.text),)))
