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
        """The constant definition that is offered to the model."""
        ...

    @property
    def accepts_restricted(self) -> bool:
        """Whether the tool may be offered in a restricted turn, in which it must return no protected text."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Run one call; it is cancelled at its timeout, or with the turn.

        Raises:
            ArgumentsRejected: the arguments are not valid; its message is sent to the model.
            BallastError: the call failed; a constant text is sent to the model.
        """
        ...
