"""The ports of tools: one for a tool of our own, one for what runs tools that a conversation has fixed."""

from typing import Protocol

from chat_shell.tools.domain.tool_answers import ToolAnswer
from shared.models.events import ModelCard
from shared.models.execution import ExecutionRequest, ServedTool, ToolDefinition
from shared.models.values import JsonObject, Value
from shared.prompts.tool_results import MAX_TOOL_RESULT_TOKENS


class ToolContext(Value):
    """The part of a turn that tools may read: the request, with bases, access mode and ticket, and the model.

    Of a result that is longer than `result_tokens`, a part is left out.
    """

    request: ExecutionRequest
    card: ModelCard
    result_tokens: int = MAX_TOOL_RESULT_TOKENS


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


class ToolProvider(Protocol):
    """Runs the tools of one tool server, whose definitions come with each request."""

    @property
    def accepts_restricted(self) -> bool:
        """Whether the operator lets its tools run in restricted turns."""
        ...

    async def run(self, served: ServedTool, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Run one call; it is cancelled with the turn, and bounds its own time and the size of its answer.

        A server that fails is no error: the answer says so to the model.

        Raises:
            ArgumentsRejected: the arguments are not valid; its message is sent to the model.
        """
        ...
