"""The log line and the metric of sweeps, which hold numbers only."""

from collections.abc import Mapping

import structlog
from prometheus_client import Counter

from backend.retention.domain import Kept

log = structlog.get_logger("backend.retention")

RETENTION_DELETED = Counter("ballast_retention_deleted_total", "Things deleted because nobody touched them", ["kind"])


class LoggingRetention:
    """The `RetentionObserver` that logs and counts."""

    def swept(self, deleted: Mapping[Kept, int]) -> None:
        """Log one line, and count each kind."""
        for kind, count in deleted.items():
            RETENTION_DELETED.labels(kind.value).inc(count)
        log.info("Retention swept", **{kind.value: count for kind, count in deleted.items()})
