"""Run a turn: a loop that takes the steps that `decide` names and gives their results to `record`."""

from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from chat_shell.models.ports import Model, ModelCall, ModelDirectory
from chat_shell.tools.domain.tool_calls import call_ids
from chat_shell.turns.domain.turn import (
    CallModel,
    Finish,
    RunTools,
    TurnState,
    YieldForCompaction,
    decide,
    list_left_out,
    record,
)
from chat_shell.turns.ports import Emit, OpenTools, TurnObserver, TurnTools, WriteReminder
from chat_shell.turns.services.model_answer import PartialAnswer
from chat_shell.turns.services.streamed_calls import StreamedCalls
from shared.clock import Clock
from shared.errors import BallastError, DeadlineExceeded, ModelError
from shared.models.error_reports import report_of
from shared.models.events import (
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    TurnEnd,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
)
from shared.models.execution import AccessMode, ExecutionRequest, Purpose, count_seconds_left
from shared.models.messages import AssistantMessage, Message, UserMessage
from shared.prompts.message_order import context_index, messages_of_request
from shared.retries import RetryPolicy

CANCELLED = "cancelled"
HANDED_BACK = "handed_back"


@dataclass(frozen=True, slots=True)
class TurnDefaults:
    """Settings of turns, and the limits of those whose request names none."""

    retry: RetryPolicy
    max_model_calls: int = 12


@dataclass(slots=True)
class _Turn:
    """A running turn: its fixed parts, and the values that each step replaces."""

    request: ExecutionRequest
    model: Model
    tools: TurnTools
    state: TurnState
    partial_answer: PartialAnswer | None = None


class RunTurn:
    """Runs turns; one instance runs any number of them at the same time."""

    def __init__(
        self,
        models: ModelDirectory,
        open_tools: OpenTools,
        write_reminder: WriteReminder,
        clock: Clock,
        observer: TurnObserver,
        defaults: TurnDefaults,
    ):
        self._models = models
        self._open_tools = open_tools
        self._write_reminder = write_reminder
        self._clock = clock
        self._observer = observer
        self._defaults = defaults

    async def __call__(self, request: ExecutionRequest, emit: Emit) -> None:
        """Run a turn and emit its events; cancelling it cancels model and tools.

        A failure after the first event is not raised but emitted as `TurnFailed`.

        Raises:
            UnknownModel: before the first event.
            InvalidRequest: before the first event; `param` names the field.
        """
        turn = self._open(request)
        with _TurnReport(self._observer, turn) as report:
            end = await self._run(turn, emit)
            report.outcome = _outcome_of(end)
            await emit(end)

    def _open(self, request: ExecutionRequest) -> _Turn:
        card = self._models.card(request.model)
        prompt = messages_of_request(request)
        return _Turn(
            request=request,
            model=self._models.model(request.model),
            tools=self._open_tools(request, card, prompt),
            state=_first_state(request, prompt, self._defaults.max_model_calls),
        )

    async def _run(self, turn: _Turn, emit: Emit) -> TurnEnd:
        try:
            step = await self._take_steps(turn, emit)
            return _end_of(turn.state, step)
        except BallastError as error:
            failure = TurnFailed(error=report_of(error), usage=turn.state.usage)
        await _emit_rest(turn, emit)
        return failure

    async def _take_steps(self, turn: _Turn, emit: Emit) -> Finish | YieldForCompaction:
        while not isinstance(step := decide(turn.state), Finish | YieldForCompaction):
            added_before = len(turn.state.added)
            if isinstance(step, CallModel):
                await self._call_model(turn, step, emit)
            else:
                await self._run_tools(turn, step, emit)
            added = turn.state.added[added_before:]
            if added:
                await emit(MessagesAdded(messages=tuple(one for one in added if one.role != "user")))
        return step

    async def _call_model(self, turn: _Turn, step: CallModel, emit: Emit) -> None:
        if self._clock.now() >= turn.request.deadline:
            raise DeadlineExceeded("the turn took longer than it may")
        reminder = self._write_reminder(turn.request, turn.state, step)
        stays = turn.request.keeps_reminders and bool(reminder)
        await emit(ModelCallStarted(call=step.number, reminder=reminder, reminder_stays=stays))
        if stays:
            turn.state = replace(turn.state, added=(*turn.state.added, UserMessage(content=reminder)))
        call = _model_call(turn, step, "" if stays else reminder)
        answer = await self._receive_answer(turn, step, call, emit)
        observation = answer.finish()
        for event in answer.flush():
            await emit(event)
        turn.partial_answer = None
        turn.state = record(turn.state, observation)
        await emit(
            ModelCallFinished(
                call=step.number,
                finish_reason=observation.finish_reason,
                usage=observation.usage,
                cost=observation.cost,
                left_out=list_left_out(turn.state, observation),
                cache_diagnosis=observation.cache_diagnosis,
            )
        )

    async def _receive_answer(self, turn: _Turn, step: CallModel, call: ModelCall, emit: Emit) -> PartialAnswer:
        """Call the model; a failure before the first fragment of its answer may be tried again."""
        retries = 0
        while True:
            streamed_calls = StreamedCalls(_streamable(turn, step), call_ids(turn.state.added))
            answer = turn.partial_answer = PartialAnswer(turn.tools.answer_text(turn.state, step), streamed_calls)
            try:
                await answer.receive(turn.model, call, turn.request.deadline, emit)
                return answer
            except ModelError as error:
                wait_seconds = None if answer.has_begun else self._defaults.retry.wait_seconds(error, retries)
                if wait_seconds is None or wait_seconds >= count_seconds_left(turn.request.deadline, self._clock.now()):
                    raise
            await self._defaults.retry.wait(call.model, wait_seconds)
            retries += 1

    async def _run_tools(self, turn: _Turn, step: RunTools, emit: Emit) -> None:
        answered = await turn.tools.run(turn.state, step, emit)
        for call in step.client:
            await emit(FunctionCallRequested(call_id=call.call_id, name=call.name, arguments=call.arguments))
        turn.state = record(turn.state, answered)


class _TurnReport:
    """Tells the observer of the start of a turn, and of its end, whichever way it ends."""

    def __init__(self, observer: TurnObserver, turn: _Turn):
        self._observer = observer
        self._turn = turn
        self.outcome = CANCELLED

    def __enter__(self) -> Self:
        self._observer.turn_started(self._turn.request)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outcome = type(error).__name__ if isinstance(error, Exception) else self.outcome  # a cancellation is no defect
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
        hand_back_tokens=request.limits.hand_back_tokens,
    )


def _end_of(state: TurnState, step: Finish | YieldForCompaction) -> TurnEnd:
    """Return the last event of a turn that takes no further step."""
    if isinstance(step, YieldForCompaction):
        return TurnHandedBack(prompt_tokens=step.prompt_tokens, usage=state.usage)
    if isinstance(step.outcome, BallastError):
        return TurnFailed(error=report_of(step.outcome), usage=state.usage)
    return TurnFinished(finish_reason=step.outcome, usage=state.usage)


def _outcome_of(end: TurnEnd) -> str:
    match end:
        case TurnFinished():
            return end.finish_reason.value
        case TurnHandedBack():
            return HANDED_BACK
        case TurnFailed():
            return end.error.type


def _is_full(request: ExecutionRequest) -> bool:
    """Whether the turn has full access to all its knowledge bases."""
    return request.knowledge.access_mode is AccessMode.FULL


def _streamable(turn: _Turn, step: CallModel) -> frozenset[str]:
    """Return the functions of which the client gets calls as they are written.

    Restricted turns are scanned first. Where knowledge may be searched, searches are shown before the client's calls.
    """
    may_stream = _is_full(turn.request) and step.tool_choice != "none" and not turn.request.knowledge.bases
    return turn.state.client_functions if may_stream else frozenset()


def _demands_function(request: ExecutionRequest) -> bool:
    """Whether `required` demands a function of the client.

    The knowledge tools are always offered, but without a knowledge base they have nothing to read.
    """
    return request.parameters.tool_choice == "required" and bool(request.tools) and not request.knowledge.bases


def _model_call(turn: _Turn, step: CallModel, reminder: str) -> ModelCall:
    parameters, is_answer = turn.request.parameters, turn.request.purpose is Purpose.ANSWER
    # What could have stood in the place of a word tells what a withheld text says.
    top_logprobs = parameters.top_logprobs if _is_full(turn.request) and is_answer else None
    return ModelCall(
        model=turn.request.model,
        messages=turn.state.messages,
        tools=turn.tools.offered,
        parameters=parameters.model_copy(update={"tool_choice": step.tool_choice, "top_logprobs": top_logprobs}),
        cache_key=turn.request.cache_key,
        stored=context_index(turn.request),
        reminder=reminder,
        purpose=turn.request.purpose,
        tenant=turn.request.user.tenant,
        conversation_id=turn.request.conversation_id,
    )


async def _emit_rest(turn: _Turn, emit: Emit) -> None:
    """Emit the text of a model call that failed midway: the part held back from the client, and the log's message."""
    if turn.partial_answer is None:
        return
    for event in turn.partial_answer.flush():
        await emit(event)
    if turn.partial_answer.said:
        await emit(MessagesAdded(messages=(AssistantMessage(text=turn.partial_answer.said),)))
