"""A model that says what a test wrote down, and all that a turn needs around it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime

from chat_shell.models.ports import Model, ModelAnswerEnd, ModelCall, ModelFragment, TextFragment
from chat_shell.models.transport.observing import ObserveCall, observed
from chat_shell.tools.domain.tool_answers import ToolAnswer
from shared.errors import UnknownModel
from shared.models.events import FinishReason, ModelCard, Usage
from shared.models.execution import ExecutionRequest
from shared.models.messages import ToolCall

MODEL_NAME = "scripted"

ScriptLine = ModelFragment | BaseException | Callable[[], Awaitable[None]]


def call(name: str, arguments: str = "{}", call_id: str = "") -> ToolCall:
    """A tool call, without an id unless given one."""
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def end(
    *calls: ToolCall,
    reason: FinishReason | None = None,
    input_tokens: int | None = 10,
    output_tokens: int | None = 5,
) -> ModelAnswerEnd:
    """The end of an answer; the reason follows from the calls unless given."""
    natural = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return ModelAnswerEnd(tool_calls=calls, finish_reason=reason or natural, usage=usage)


def says(*texts: str) -> list[ScriptLine]:
    """A script: these deltas and a regular end."""
    return [*(TextFragment(text=text) for text in texts), end()]


def calls(*tool_calls: ToolCall, text: str = "") -> list[ScriptLine]:
    """A script: perhaps some words, then tool calls."""
    return [*([TextFragment(text=text)] if text else []), end(*tool_calls)]


class ScriptedModel:
    """Plays one script a call, the last one over and over; a script line may be an error or something to wait for."""

    def __init__(self, *scripts: Sequence[ScriptLine], observers: Sequence[ObserveCall] = ()):
        self.scripts = scripts
        self.observers = observers
        self.calls: list[ModelCall] = []
        self.closed_streams = 0

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment]:
        script = self.scripts[min(len(self.calls), len(self.scripts) - 1)]
        self.calls.append(call)
        try:
            with observed(self.observers, call) as told:
                for line in script:
                    if isinstance(line, BaseException):
                        raise line
                    if isinstance(line, ModelFragment):
                        yield told.pass_on(line)
                    else:
                        await line()
        finally:
            self.closed_streams += 1


class OneModelDirectory:
    """Offers a single model."""

    def __init__(self, model: Model, *, window_tokens: int = 100_000, max_output_tokens: int = 10_000):
        self._model = model
        self._card = ModelCard(
            name=MODEL_NAME, context_window_tokens=window_tokens, max_output_tokens=max_output_tokens
        )

    def cards(self) -> tuple[ModelCard, ...]:
        return (self._card,)

    def card(self, name: str) -> ModelCard:
        if name != MODEL_NAME:
            raise UnknownModel(f"no model {name}")
        return self._card

    def model(self, name: str) -> Model:
        self.card(name)
        return self._model


class RecordingObserver:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.finished: list[tuple[str, Usage]] = []
        self.failures: list[tuple[str, BaseException]] = []
        self.answers: list[tuple[str, ToolAnswer]] = []

    def turn_started(self, request: ExecutionRequest) -> None:
        self.started.append(request.turn_id)

    def turn_finished(self, request: ExecutionRequest, outcome: str, usage: Usage) -> None:
        self.finished.append((outcome, usage))

    def tool_answered(self, request: ExecutionRequest, tool: str, answer: ToolAnswer) -> None:
        self.answers.append((tool, answer))

    def tool_failed(self, request: ExecutionRequest, tool: str, error: BaseException) -> None:
        self.failures.append((tool, error))
