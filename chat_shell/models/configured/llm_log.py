"""Log failures of models, and whole requests and answers where the operator has switched it on."""

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson
import structlog

from chat_shell.models.ports import (
    ModelAnswerEnd,
    ModelCall,
    ModelFragment,
    ReasoningFragment,
    RefusalFragment,
    TextFragment,
)
from chat_shell.models.transport.observing import CallHooks
from shared.clock import Clock
from shared.environment import cause_of
from shared.errors import BallastError, ModelError
from shared.telemetry import LogEvent


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


_log = structlog.get_logger("chat_shell.models")


def log_request(call: ModelCall, body: bytes) -> None:
    """Log `LLM_REQUEST` with the parsed body of the request."""
    _log.info(
        "LLM_REQUEST",
        model=call.model,
        purpose=call.purpose.value,
        cache_key=call.cache_key,
        message_count=len(call.sent_messages),
        tools=[tool.name for tool in call.tools],
        body_bytes=len(body),
        body=orjson.loads(body),
    )


@dataclass
class _Answer:
    """The received part of an answer."""

    said: dict[type, list[str]] = field(default_factory=lambda: defaultdict(list))
    end: ModelAnswerEnd | None = None

    def record(self, fragment: ModelFragment) -> None:
        """Add a fragment."""
        if isinstance(fragment, TextFragment | ReasoningFragment | RefusalFragment):
            self.said[type(fragment)].append(fragment.text)

    def record_end(self, end: ModelAnswerEnd) -> ModelAnswerEnd:
        """Add the end."""
        self.end = end
        return end

    def fields(self) -> dict[str, object]:
        """Return the fields of the log line; reasoning and refusal only where the model gave any."""
        found: dict[str, object] = {"text": "".join(self.said[TextFragment])}
        for name, kind in (("reasoning", ReasoningFragment), ("refusal", RefusalFragment)):
            if text := "".join(self.said[kind]):
                found[name] = text
        if self.end is not None:
            found["tool_calls"] = [call.model_dump() for call in self.end.tool_calls]
            found["finish_reason"] = self.end.finish_reason.value
            found["usage"] = self.end.usage.model_dump()
        return found


@contextmanager
def log_answer(clock: Clock, call: ModelCall) -> Generator[CallHooks]:
    """Log `LLM_RESPONSE` after a model call: the answer, or its received part and why it ended there."""
    started_at = clock.now()
    answer = _Answer()
    failure: dict[str, str] = {"error": "closed by the caller"}
    try:
        yield CallHooks(on_fragment=answer.record, on_end=answer.record_end)
        failure = {}
    except BallastError as error:
        failure = {"error": type(error).__name__, "error_message": error.message}
        raise
    finally:
        seconds = (clock.now() - started_at).total_seconds()
        outcome = {} if answer.end is not None else failure
        named = {"model": call.model, "purpose": call.purpose.value}
        _log.info("LLM_RESPONSE", **named, duration_seconds=seconds, **answer.fields(), **outcome)
