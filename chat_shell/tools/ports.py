"""The port that our own tools implement."""

from typing import Protocol

from chat_shell.tools.domain.tool_answers import ToolAnswer
from shared.models.events import ModelCard
from shared.models.execution import ExecutionRequest, ToolDefinition
from shared.models.values import JsonObject, Value


class ToolContext(Value):
    """The part of a turn that tools may read: the request, with bases, access mode and ticket, and the model."""

    request: ExecutionRequest
    card: ModelCard


class Tool(Protocol):
    """A tool of our own. It acts with the caller's authority and never beyond the turn's bound bases."""

    @property
    def definition(self) -> ToolDefinition:
        """Return what is offered to the model: a constant."""
        ...

    @property
    def accepts_restricted(self) -> bool:
        """Whether it may be offered in a restricted turn, which it must then treat as one."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Answer one call; cancelled at its timeout and when the turn is.

        Raises:
            ArgumentsRejected: the arguments do not fit; its message goes to the model.
            BallastError: the call failed; the model is told so in words of ours.
        """
        ...
