"""Run one tool that no model has asked for, in the same way as in a turn."""

from collections.abc import Awaitable, Callable

from chat_shell.knowledge.domain.documents import DocumentNumbers
from chat_shell.models.ports import ModelDirectory
from chat_shell.tools.ports.tools import ToolContext
from chat_shell.turns.domain.limits import KnowledgeAllowance
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.tool_round import finish_round
from shared.models.json_text import encode_json
from shared.models.messages import ToolCall
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult
from shared.telemetry import bind_ids

_CALL_ID = "call_1"

ToolLister = Callable[[], Awaitable[OfferedTools]]


class SingleTools:
    """Runs single tools. A restricted turn has the same tools, the same sealed room and the same words for failures.

    Results are bounded by the window of the default model, because no model reads them here.
    """

    def __init__(self, toolbox: Toolbox, models: ModelDirectory, offered: ToolLister) -> None:
        self._toolbox = toolbox
        self._models = models
        self._list_offered = offered

    async def list_offered(self) -> OfferedTools:
        """Return the tools of tool servers, and the skills."""
        return await self._list_offered()

    async def __call__(self, call: SingleToolCall) -> SingleToolResult:
        """Run a call. A call that is refused or fails has a result that says so; nothing but cancellation is raised."""
        turn = call.turn
        bind_ids(request_id=turn.request_id, conversation_id=turn.conversation_id, turn_id=turn.turn_id)
        context = ToolContext(request=turn, card=self._models.cards()[0])
        allowance = KnowledgeAllowance(calls_left=1, budget_tokens=context.card.input_budget_tokens, used_tokens=0)
        written = ToolCall(
            call_id=_CALL_ID, name=call.tool, arguments=encode_json(call.arguments, "arguments").decode()
        )
        calls, allowance = self._toolbox.admit((written,), context, allowance)
        answers = await self._toolbox.run(calls, context)
        (message,) = finish_round(calls, answers, DocumentNumbers(), allowance, context.result_tokens).messages
        text = message.content if isinstance(message.content, str) else ""
        return SingleToolResult(text=text, failed=answers[0].failed, structured=answers[0].structured)
