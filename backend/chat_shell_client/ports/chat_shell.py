"""The port to chat_shell, which runs the models."""

from collections.abc import AsyncIterator
from typing import Protocol

from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import ExecutionRequest
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult


class ChatShell(Protocol):
    """Runs turns. Closing the iterator (`aclosing`) cancels the turn in chat_shell."""

    def execute(self, request: ExecutionRequest) -> AsyncIterator[tuple[ExecutionEvent, ...]]:
        """Run a turn; yield its events in order, several at once when several are ready.

        Raises:
            ChatShellUnavailable: no connection, or the connection was lost before the terminal event.
            DeadlineExceeded: the request's deadline passed.
        """
        ...

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models.

        Raises:
            ChatShellUnavailable: no connection.
        """
        ...

    async def tools(self) -> OfferedTools:
        """Return the tools of the operator's tool servers, and the skills; none of a chat_shell that has neither.

        Raises:
            ChatShellUnavailable: no connection.
        """
        ...

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Run one of chat_shell's tools without a model.

        Raises:
            ChatShellUnavailable: no connection, the connection was lost, or chat_shell is of a release that cannot.
            DeadlineExceeded: the turn's deadline passed.
        """
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...
