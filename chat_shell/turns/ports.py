"""The port through which operators observe turns."""

from typing import Protocol

from chat_shell.tools.domain.tool_answers import ToolAnswer
from shared.models.events import Usage
from shared.models.execution import ExecutionRequest


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
