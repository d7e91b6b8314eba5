"""The port to a tool server, and what is reported of it to an operator."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from chat_shell.tools.domain.definitions import DroppedTool, ListedTool
from shared.models.values import JsonObject, Value


class CallFailure(StrEnum):
    """Why a server gave no list or result."""

    AWAY = "away"
    BROKE = "broke"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    UNREADABLE = "unreadable"


class ToolServerFailed(Exception):
    """A server gave no list or result; what it said of that is dropped."""

    def __init__(self, failure: CallFailure):
        super().__init__(failure.value)
        self.failure = failure


class CallResult(Value):
    """The result of a call as text, not yet cut; `failed` says that the tool itself reports an error.

    A line stands for each content that is no text.
    """

    text: str
    failed: bool


class ToolServer(Protocol):
    """A tool server, which anyone may have written. Nothing of one call is known to another.

    Of what it sends, never more is held than a message of the bound in its entry.
    """

    async def list_tools(self) -> tuple[ListedTool, ...]:
        """Return its tools as it lists them now.

        Raises:
            ToolServerFailed: it gave no list.
        """
        ...

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool. The caller bounds the time; cancelling ends the wait at once, and the server is told.

        Raises:
            ToolServerFailed: it gave no result.
        """
        ...

    async def run(self) -> None:
        """Hold what calls need, such as a child process, until cancelled; calls fail while this does not run."""
        ...


class ToolServerObserver(Protocol):
    """Told what an operator wants to see of tool servers; must not raise and must not block."""

    def tools_listed(self, server: str, count: int, dropped: Sequence[DroppedTool]) -> None:
        """A server has listed its tools, of which `count` are offered, for the first time or otherwise than before."""
        ...

    def note_failed_listing(self, server: str, failure: CallFailure) -> None:
        """A server could not be asked for its tools; its last known list stays."""
        ...

    def tool_called(self, server: str, tool: str, outcome: str, seconds: float) -> None:
        """A call has ended; `outcome` is ok, error (the tool's own), cancelled, or a `CallFailure`."""
        ...
