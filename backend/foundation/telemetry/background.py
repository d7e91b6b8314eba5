"""The log lines and the Prometheus metric of background work."""

import structlog
from prometheus_client import Counter

from shared.environment import cause_of
from shared.errors import Unavailable
from shared.telemetry import LogEvent

log = structlog.get_logger("backend.background")

BACKGROUND_FAILURES = Counter("ballast_background_failures_total", "Failed steps of background work", ["task"])


class LoggingFailureObserver:
    """Implements `backend.foundation.ports.readiness.FailureObserver`."""

    def background_failed(self, task: str, error: BaseException) -> None:
        """Count the failure, and log it: an outage with its cause in one line, a defect with its traceback."""
        BACKGROUND_FAILURES.labels(task).inc()
        if isinstance(error, Unavailable):
            cause = cause_of(error.__cause__ or error)
            log.warning(LogEvent.BACKGROUND_FAILED, task=task, error=error.message, cause=cause)
        else:
            log.error(LogEvent.BACKGROUND_FAILED, task=task, exc_info=error)
