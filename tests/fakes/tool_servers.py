"""A tool server without a protocol, and what tests see of calls."""

import asyncio
from collections.abc import Sequence

from chat_shell.tools.domain.definitions import DroppedTool, ListedTool
from chat_shell.tools.ports.tools import CallFailure, CallResult, ToolServerFailed
from shared.models.values import JsonObject

ECHO_SCHEMA: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


ANSWERS = {
    "echo": (False, "{}"),
    "broken": (True, "no {}"),
    "refused": (True, "not like that"),
    "binary": (False, "a picture:\n[image/png, 10 bytes, not shown]"),
    "structured": (False, '{{"said":"{}"}}'),
}
FAILURES = {"die": CallFailure.BROKE, "huge": CallFailure.TOO_LARGE}


def listed_tool(name: str) -> ListedTool:
    return ListedTool(name=name, description=f"{name} something.", parameters=ECHO_SCHEMA)


class FakeToolServer:
    """A server whose tools do what their names say; `is_away` makes it unreachable."""

    def __init__(self, names: Sequence[str] = ("echo", "hang")) -> None:
        self.listed = [listed_tool(name) for name in names]
        self.is_away = False
        self.calls: list[tuple[str, JsonObject]] = []
        self.lists = 0
        self.called = asyncio.Event()

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def list_tools(self) -> tuple[ListedTool, ...]:
        self.lists += 1
        if self.is_away:
            raise ToolServerFailed(CallFailure.AWAY)
        return tuple(self.listed)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        self.calls.append((tool, arguments))
        self.called.set()
        if self.is_away:
            raise ToolServerFailed(CallFailure.AWAY)
        if tool in FAILURES:
            raise ToolServerFailed(FAILURES[tool])
        if tool == "hang":
            await asyncio.Event().wait()
        failed, text = ANSWERS.get(tool, (False, "{}"))
        return CallResult(text=text.format(arguments.get("text", "")), failed=failed)


class ToolServerRecord:
    """Implements `ToolServerObserver`."""

    def __init__(self) -> None:
        self.listed: list[tuple[str, int, tuple[DroppedTool, ...]]] = []
        self.failed: list[tuple[str, CallFailure]] = []
        self.called: list[tuple[str, str, str]] = []
        self.changed = asyncio.Event()

    def tools_listed(self, server: str, count: int, dropped: Sequence[DroppedTool]) -> None:
        self.changed.set()
        self.listed.append((server, count, tuple(dropped)))

    def note_failed_listing(self, server: str, failure: CallFailure) -> None:
        self.changed.set()
        self.failed.append((server, failure))

    def tool_called(self, server: str, tool: str, outcome: str, seconds: float) -> None:
        self.called.append((server, tool, outcome))
