"""Measure and trace the calls of a model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

from prometheus_client import Counter, Histogram

from chat_shell.models.ports import Model, ModelAnswerEnd, ModelCall, ModelFragment
from shared.errors import BallastError
from shared.models.events import Usage
from shared.tracing import SpanKind, WorkSpan, span_of

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)

CALLS = Counter(
    "ballast_model_calls_total", "Model calls by how they ended: answered, or an error", ["model", "outcome"]
)
SECONDS = Histogram("ballast_model_call_seconds", "Model calls from request to end", ["model"], buckets=_SECONDS)
FIRST_SECONDS = Histogram(
    "ballast_model_first_fragment_seconds", "From a request to the first of its answer", ["model"], buckets=_SECONDS
)
TOKENS = Counter("ballast_model_tokens_total", "Tokens that providers counted", ["model", "kind"])
RETRIES = Counter("ballast_model_retries_total", "Model calls that were sent again", ["model"])

ANSWERED = "answered"
LEFT = "left"
"""The caller stopped listening."""


def count_retry(model: str) -> None:
    """Count a call that is sent again."""
    RETRIES.labels(model).inc()


class MeasuredModel:
    """Counts the calls of another model, their time and tokens; each is a span."""

    def __init__(self, model: Model, name: str, base_url: str) -> None:
        self._model = model
        self._name = name
        self._attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": name,
            "server.address": urlsplit(base_url).hostname or "",
        }

    async def stream(self, call: ModelCall, deadline: datetime) -> AsyncGenerator[ModelFragment, None]:
        """Run one model call; see the port."""
        began_at, outcome, has_begun = perf_counter(), LEFT, False
        with span_of(f"chat {self._name}", self._attributes, SpanKind.CLIENT) as span:
            try:
                stream = cast(AsyncGenerator[ModelFragment], self._model.stream(call, deadline))
                async with aclosing(stream) as fragments:
                    async for fragment in fragments:
                        if not has_begun:
                            has_begun = True
                            FIRST_SECONDS.labels(self._name).observe(perf_counter() - began_at)
                        if isinstance(fragment, ModelAnswerEnd):
                            outcome = ANSWERED
                            self._note_end(fragment, span)
                        yield fragment
            except BallastError as error:
                outcome = type(error).__name__
                raise
            finally:
                CALLS.labels(self._name, outcome).inc()
                SECONDS.labels(self._name).observe(perf_counter() - began_at)

    def _note_end(self, end: ModelAnswerEnd, span: WorkSpan) -> None:
        counts = _counts(end.usage)
        for kind, tokens in counts.items():
            TOKENS.labels(self._name, kind).inc(tokens)
        span.set({"gen_ai.response.finish_reason": end.finish_reason.value})
        span.set({f"gen_ai.usage.{kind}_tokens": tokens for kind, tokens in counts.items()})


def _counts(usage: Usage) -> dict[str, int]:
    counts = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
    return {kind: tokens for kind, tokens in counts.items() if tokens}
