"""Log each failed call of a provider, so that an operator sees it where the turn itself recovers, too."""

from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import structlog

from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.observing import CallHooks
from shared.environment import cause_of
from shared.errors import ModelError
from shared.telemetry import LogEvent

_log = structlog.get_logger("chat_shell.models")


class FailureLog:
    """Logs `Model failed` with model, host, and the provider's status and request id; never with its text."""

    def __init__(self, base_url: str) -> None:
        self._host = urlsplit(base_url).netloc.rpartition("@")[2]

    @contextmanager
    def observe(self, call: ModelCall) -> Generator[CallHooks]:
        """Log a call that fails."""
        try:
            yield CallHooks()
        except ModelError as error:
            _log.warning(
                LogEvent.MODEL_FAILED,
                model=call.model,
                host=self._host,
                status=error.status,
                provider_request_id=error.request_id,
                error_type=type(error).__name__,
                cause=cause_of(error),
                retryable=error.retryable,
            )
            raise
