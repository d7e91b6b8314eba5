"""The tools of tool servers, and the skills, that chat_shell offers; and those that turns and agents may name."""

from collections.abc import Sequence

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.domain.served_tools import ServedTools, ToolSelection
from backend.openai_api.domain.client_tools import function_definitions
from backend.openai_api.domain.mcp_tool import McpTool
from backend.openai_api.domain.presets import Preset
from backend.openai_api.domain.tool_selection import check_selection, selection_of
from backend.openai_api.domain.turn_request import Tool, TurnRequest
from backend.turns.services.request.model_catalogue import RecentAnswer
from shared.clock import Clock
from shared.errors import InvalidRequest
from shared.models.execution import ToolDefinition
from shared.models.served_tools import NO_TOOLS


class ToolCatalogue:
    """Checks what requests and agents name, and fixes it for conversations.

    chat_shell is asked at most every few seconds, and only for those that name anything.
    """

    def __init__(self, chat_shell: ChatShell, clock: Clock) -> None:
        self._offered = RecentAnswer(chat_shell.tools, clock)

    async def check(self, tools: Sequence[Tool], skills: Sequence[str] = ()) -> None:
        """Check what the tools of a request, or tools and skills of an agent, name.

        Raises:
            InvalidRequest: there is no such server, tool or skill; `param` names the place.
            UnsupportedValue: the tool names a server by its address, or wants its calls approved.
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        if skills or any(isinstance(tool, McpTool) for tool in tools):
            check_selection(tools, skills, await self._offered.get())

    async def check_agent(self, tools: Sequence[Tool], skills: Sequence[str]) -> None:
        """Check what an agent names, and that none of its functions has the name of a tool that it has now.

        Raises:
            InvalidRequest: there is no such server, tool or skill, or a function has such a name.
            UnsupportedValue: a tool names a server by its address, or wants its calls approved.
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        await self.check(tools, skills)
        selection = selection_of(tools, skills)
        if selection != ToolSelection():
            fixed = ServedTools().fix(selection, await self._offered.get())
            check_function_names(function_definitions(tools), fixed)

    async def fix(
        self, request: TurnRequest, own: ToolSelection, preset: Preset | None, before: ServedTools
    ) -> ServedTools:
        """Return what a conversation has fixed, with this turn's selection; `before` is what it had fixed until then.

        Raises:
            InvalidRequest: the request names what is not there, or a function has the name of such a tool.
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        await self.check(request.tools or ())
        selection = own if preset is None else own.join(preset.selection)
        if before.needs_offer(selection):
            offered = await self._offered.get() if selection != ToolSelection() else NO_TOOLS
            before = before.fix(selection, offered)
        return before.model_copy(update={"own": own})


def check_function_names(functions: Sequence[ToolDefinition], served: ServedTools) -> None:
    """Check that no function of the client has the name of a tool of a tool server.

    Raises:
        InvalidRequest: one has.
    """
    names = {tool.definition.name for tool in served.tools}
    for function in functions:
        if function.name in names:
            message = f"The function {function.name!r} has the name of a tool of a tool server; use another name."
            raise InvalidRequest(message, param="tools")
