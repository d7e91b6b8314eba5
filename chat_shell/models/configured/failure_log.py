"""Log each failed call of a provider, so that an operator sees it where the turn itself recovers, too."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import cast
from urllib.parse import urlsplit

import structlog

from chat_shell.models.ports import Model, ModelCall, ModelFragment
from shared.environment import cause_of
from shared.errors import ModelError
from shared.telemetry import LogEvent

_log = structlog.get_logger("chat_shell.models")


class ReportedModel:
    """Logs `Model failed` with model, host, and the provider's status and request id; never with its text."""

    def __init__(self, model: Model, base_url: str) -> None:
        self._model = model
        self._host = urlsplit(base_url).netloc.rpartition("@")[2]

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        try:
            async with aclosing(cast(AsyncGenerator[ModelFragment], self._model.stream(call, deadline))) as fragments:
                async for fragment in fragments:
                    yield fragment
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
