"""What an operator sees of descriptions that are kept from restricted members."""

import structlog

log = structlog.get_logger("backend.knowledge")


class LoggingDescriptionObserver:
    """Implements `backend.foundation.ports.observer.DescriptionObserver`; owners find here why a hint does not show."""

    def texts_left_out(self, base_id: str, count: int) -> None:
        """Log it, and none of the texts."""
        log.warning("Description left out", knowledge_base=base_id, texts=count)
