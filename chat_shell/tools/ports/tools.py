"""The ports of tools: one for a tool of our own, one for what runs tools that a conversation has fixed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from chat_shell.tools.domain.definitions import DroppedTool, ListedTool
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
