"""Tools that a conversation has fixed, in the form of our own tools."""

from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.ports.tools import ToolContext, ToolProvider
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.values import JsonObject
from shared.prompts.tool_servers import TOOL_GONE


class FixedTool:
    """Implements `Tool` for a tool of a tool server; `provider` is None where that server is not configured any more.

    A server that is gone is no reason to offer other tools: its calls get an answer that says so.
    """

    def __init__(self, served: ServedTool, provider: ToolProvider | None) -> None:
        self._served = served
        self._provider = provider

    @property
    def definition(self) -> ToolDefinition:
        """The definition that the conversation has fixed."""
        return self._served.definition

    @property
    def accepts_restricted(self) -> bool:
        """Whether both the conversation and the operator's present configuration let it run in restricted turns."""
        return self._served.accepts_restricted and (self._provider is None or self._provider.accepts_restricted)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Run one call; it is cancelled with the turn.

        Raises:
            ArgumentsRejected: the arguments are not valid; its message is sent to the model.
        """
        if self._provider is None:
            return ToolAnswer(text=TOOL_GONE, failed=True)
        return await self._provider.run(self._served, arguments, context)
