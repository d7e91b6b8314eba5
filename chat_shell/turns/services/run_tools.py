"""Offer our own tools to the model, decide which of its calls run, and run them with a timeout."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.domain.tool_calls import ArgumentsRejected, decode_arguments
from chat_shell.tools.ports.tools import Tool, ToolContext, ToolProvider
from chat_shell.tools.services.fixed_tool import FixedTool
from chat_shell.turns.domain.limits import KnowledgeAllowance
from chat_shell.turns.ports import TurnObserver
from shared.clock import Clock
from shared.errors import BallastError, InvalidRequest, NotFound, PermissionDenied, Unauthenticated
from shared.models.execution import AccessMode, ExecutionRequest, ServedTool, ToolDefinition, count_seconds_left
from shared.models.messages import ToolCall
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import tool_results
from shared.prompts.knowledge_tools import KNOWLEDGE_TOOLS, can_read_files, list_offered_tools, select_served
from shared.prompts.read_file import READ_FILE
from shared.tracing import span_of

UNKNOWN_TOOL = "unknown"
"""Stands in traces for a name that a model has made up."""

TOOL_ERROR = "tool_error"

_READERS = KNOWLEDGE_TOOLS | {READ_FILE}
"""Our own tools that read texts for the model."""


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """A tool call that either runs, or is answered with `refusal` because it may not run.

    `served` is set where it is a call of a tool of a tool server that runs.
    """

    call: ToolCall
    tool: Tool | None
    arguments: JsonObject
    refusal: str
    served: ServedTool | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What equal reads of knowledge have in common, and no two other calls."""
        return self.call.name, self.call.arguments if self.reads_knowledge else self.call.call_id

    @property
    def reads_knowledge(self) -> bool:
        """Whether this is a call of a knowledge tool that runs."""
        return self.tool is not None and self.call.name in _READERS

    @property
    def search_query(self) -> str | None:
        """The query, if this is a knowledge search that runs."""
        query = self.arguments.get("query")
        runs = self.tool is not None and self.call.name == texts.KNOWLEDGE_BASE_SEARCH
        return query if runs and isinstance(query, str) and query.strip() else None


class Toolbox:
    """Offers and runs our own tools: the knowledge tools and any others, and those that requests bring with them.

    `providers` run the latter, by the names of their servers.

    Raises:
        ValueError: a name is given to two tools, or a knowledge tool is missing.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        clock: Clock,
        observer: TurnObserver,
        timeout_seconds: float,
        providers: Mapping[str, ToolProvider] | None = None,
    ):
        self._tools = _by_name(tools)
        self._providers = providers or {}
        self._clock = clock
        self._observer = observer
        self._timeout_seconds = timeout_seconds

    def offer(self, request: ExecutionRequest) -> tuple[ToolDefinition, ...]:
        """Return what is offered to the model, ours and the client's, sorted by name.

        Raises:
            InvalidRequest: a function of the client has the name of one of our tools.
        """
        for place, function in enumerate(request.tools):
            if function.name in self._tools and function.name != READ_FILE:
                raise InvalidRequest("the name belongs to a built-in tool", param=f"tools[{place}].name")
        for place, served in enumerate(request.served_tools):
            if served.definition.name in self._tools:
                param = f"served_tools[{place}].definition.name"
                raise InvalidRequest("the name belongs to a built-in tool", param=param)
        mode = request.knowledge.access_mode
        others = [tool.definition for name, tool in self._own_in(request).items() if name not in _READERS]
        functions = (*others, *select_served(request.served_tools, mode), *request.tools)
        return list_offered_tools(functions, mode, reads_files=request.reads_files)

    def admit(
        self, calls: Sequence[ToolCall], context: ToolContext, allowance: KnowledgeAllowance
    ) -> tuple[tuple[AdmittedCall, ...], KnowledgeAllowance]:
        """Decide for each call, in order, whether it runs; what does not run has its answer already."""
        admitted: list[AdmittedCall] = []
        for call in calls:
            one = self._admit(call, context.request, allowance)
            if one.reads_knowledge:
                allowance = allowance.after_call()
            admitted.append(one)
        return tuple(admitted), allowance

    async def run(self, calls: Sequence[AdmittedCall], context: ToolContext) -> tuple[ToolAnswer, ...]:
        """Run the calls side by side; answers stand in call order. Nothing but cancellation gets out.

        Equal reads of knowledge run once and have one answer: a restricted search is charged once for all of them.
        """
        tasks: dict[tuple[str, str], asyncio.Task[ToolAnswer]] = {}
        async with asyncio.TaskGroup() as group:
            for call in calls:
                if call.identity not in tasks:
                    tasks[call.identity] = group.create_task(self._answer_and_tell(call, context))
        return tuple(tasks[call.identity].result() for call in calls)

    def _own_in(self, request: ExecutionRequest) -> Mapping[str, Tool]:
        full = request.knowledge.access_mode is AccessMode.FULL
        unused = () if request.reads_files and can_read_files(request.tools) else (READ_FILE,)
        return {
            name: tool for name, tool in self._tools.items() if name not in unused and (full or tool.accepts_restricted)
        }

    def _usable(self, request: ExecutionRequest) -> Mapping[str, Tool]:
        """Return what may run, by name. The operator may have withdrawn what the conversation still offers."""
        mode = request.knowledge.access_mode
        fixed = {
            served.definition.name: FixedTool(served, self._providers.get(served.server))
            for served in request.served_tools
        }
        full = mode is AccessMode.FULL
        return {
            **{name: tool for name, tool in fixed.items() if full or tool.accepts_restricted},
            **self._own_in(request),
        }

    def _admit(self, call: ToolCall, request: ExecutionRequest, allowance: KnowledgeAllowance) -> AdmittedCall:
        usable = self._usable(request)
        tool = usable.get(call.name)
        if tool is None:
            names = sorted({*usable, *(function.name for function in request.tools)})
            return AdmittedCall(call, None, {}, tool_results.TOOL_UNKNOWN + ", ".join(names))
        try:
            arguments = decode_arguments(call.arguments)
        except ArgumentsRejected as rejection:
            return AdmittedCall(call, None, {}, rejection.message)
        refusal = allowance.refusal() if call.name in _READERS else None
        if refusal is not None:
            return AdmittedCall(call, None, {}, _failure(call, request, refusal))
        return AdmittedCall(call, tool, arguments, "", _find_served(call.name, request))

    async def _answer_and_tell(self, admitted: AdmittedCall, context: ToolContext) -> ToolAnswer:
        name = admitted.call.name if admitted.tool is not None else UNKNOWN_TOOL
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        with span_of(f"execute_tool {name}", attributes) as span:
            answer = await self._answer(admitted, context)
            if answer.failed:
                span.fail(TOOL_ERROR)
        self._observer.tool_answered(context.request, admitted.call.name, answer)
        return answer

    async def _answer(self, admitted: AdmittedCall, context: ToolContext) -> ToolAnswer:
        if admitted.tool is None:
            return ToolAnswer(text=admitted.refusal, failed=True)
        try:
            return await self._run_in_time(admitted.tool, admitted, context)
        except ArgumentsRejected as rejection:
            text = rejection.message
        except TimeoutError:
            text = tool_results.TOOL_TIMED_OUT
        except BallastError as error:
            text = _words_for(error)
        except Exception as error:  # noqa: BLE001 — a defect of a tool must not end the turn
            self._observer.tool_failed(context.request, admitted.call.name, error)
            text = tool_results.TOOL_FAILED
        return ToolAnswer(text=_failure(admitted.call, context.request, text), failed=True)

    async def _run_in_time(self, tool: Tool, admitted: AdmittedCall, context: ToolContext) -> ToolAnswer:
        left_seconds = count_seconds_left(context.request.deadline, self._clock.now())
        # The operator says for each tool server how long its calls may take, and its provider holds to that.
        limit_seconds = left_seconds if admitted.served is not None else min(self._timeout_seconds, left_seconds)
        async with asyncio.timeout(limit_seconds):
            return await tool.run(admitted.arguments, context)


def _by_name(tools: Sequence[Tool]) -> Mapping[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in tools:
        name = tool.definition.name
        if name in named:
            raise ValueError(f"two tools have the name {name}")
        named[name] = tool
    missing = sorted(KNOWLEDGE_TOOLS - named.keys())
    if missing:
        raise ValueError(f"no tool has the name {missing[0]}")
    return named


def _find_served(name: str, request: ExecutionRequest) -> ServedTool | None:
    return next((served for served in request.served_tools if served.definition.name == name), None)


def _failure(call: ToolCall, request: ExecutionRequest, text: str) -> str:
    """In a restricted turn every failure of a knowledge tool reads the same, whatever its cause."""
    restricted = request.knowledge.access_mode is not AccessMode.FULL
    return texts.CANNOT_ANSWER if restricted and call.name in KNOWLEDGE_TOOLS else text


def _words_for(error: BallastError) -> str:
    if isinstance(error, PermissionDenied | Unauthenticated):
        return tool_results.TOOL_NOT_PERMITTED
    if isinstance(error, NotFound):
        return texts.NO_SUCH_DOCUMENT
    return tool_results.TOOL_UNAVAILABLE if error.retryable else tool_results.TOOL_FAILED
