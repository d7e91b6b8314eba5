"""Log lines and Prometheus metrics about tool servers; nothing of what they were sent or said is in them."""

from collections.abc import Sequence

import structlog
from prometheus_client import Counter, Histogram

from chat_shell.tools.domain.definitions import DroppedTool
from chat_shell.tools.ports.tools import CallFailure
from shared.telemetry import LogEvent

log = structlog.get_logger("chat_shell.tool_servers")

CALLS = Counter("ballast_tool_server_calls_total", "Calls of tool servers by how they ended", ["server", "outcome"])
SECONDS = Histogram("ballast_tool_server_call_seconds", "Duration of calls of tool servers", ["server"])

MAX_DROPPED_SHOWN = 20


class LoggingToolServers:
    """Implements `ToolServerObserver`."""

    def tools_listed(self, server: str, count: int, dropped: Sequence[DroppedTool]) -> None:
        """Log how many tools are offered, and a line for each that is not."""
        log.info("Tool server listed its tools", server=server, tools=count, dropped=len(dropped))
        for each in dropped[:MAX_DROPPED_SHOWN]:
            log.warning("Tool is not offered", server=server, tool=each.tool, reason=each.reason)

    def note_failed_listing(self, server: str, failure: CallFailure) -> None:
        """Log that a server could not be asked, once until it can be again."""
        log.warning("Tool server cannot be asked for its tools", server=server, reason=failure.value)

    def tool_called(self, server: str, tool: str, outcome: str, seconds: float) -> None:
        """Log and count a call."""
        CALLS.labels(server, outcome).inc()
        SECONDS.labels(server).observe(seconds)
        log.info(LogEvent.TOOL_SERVER_CALLED, server=server, tool=tool, outcome=outcome, seconds=round(seconds, 3))
