"""The ports of a turn: the text of its answers, its tools, and its observer for operators."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.turns.domain.turn import CallModel, RunTools, ToolsAnswered, TurnState
from shared.models.events import ExecutionEvent, ModelCard, Usage
from shared.models.execution import ExecutionRequest, ToolDefinition
from shared.models.messages import Message, ToolCall

Emit = Callable[[ExecutionEvent], Awaitable[None]]
"""Takes the events of a turn in their order; it may make the turn wait."""


class AnswerText(Protocol):
    """What clients get of the text of one answer, however the text is split."""

    def feed(self, text: str) -> Iterable[ExecutionEvent]:
        """Take more text; return what may be shown, over which the caller iterates before the next call."""
        ...

    def flush(self) -> Iterable[ExecutionEvent]:
        """Return what was held back; called once the text has ended."""
        ...

    def take_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls that the whole text stands for, of which nothing is shown; none where it has words."""
        ...


class TurnTools(Protocol):
    """The tools of one turn, and what the turn knows of their results."""

    @property
    def offered(self) -> tuple[ToolDefinition, ...]:
        """What is offered to the model, ours and the client's, sorted by name."""
        ...

    def answer_text(self, state: TurnState, step: CallModel) -> AnswerText:
        """Begin to read the text of the answer to a model call."""
        ...

    async def run(self, state: TurnState, step: RunTools, emit: Emit) -> ToolsAnswered:
        """Run our own calls, emit what clients see of them, and return what the model reads."""
        ...


OpenTools = Callable[[ExecutionRequest, ModelCard, Sequence[Message]], TurnTools]
"""Opens the tools of a turn, for its model, whose first prompt holds these messages.

It raises InvalidRequest where tools of the request cannot be offered.
"""

WriteReminder = Callable[[ExecutionRequest, TurnState, CallModel], str]
"""Writes the message with which the request of a model call ends; "" where there is nothing to say."""


class TurnObserver(Protocol):
    """Told what an operator wants to see; must not raise and must not block."""

    def turn_started(self, request: ExecutionRequest) -> None:
        """A turn begins."""
        ...

    def turn_finished(self, request: ExecutionRequest, outcome: str, usage: Usage) -> None:
        """A turn ended: `outcome` is a finish reason, `cancelled`, or the class of the error."""
        ...

    def tool_answered(self, request: ExecutionRequest, tool: str, answer: ToolAnswer) -> None:
        """A call of one of our tools has its answer, a refusal among them."""
        ...

    def tool_failed(self, request: ExecutionRequest, tool: str, error: BaseException) -> None:
        """A tool raised something that is no BallastError: a defect, to be logged with its traceback."""
        ...
