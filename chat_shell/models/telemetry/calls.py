"""Measure, trace and price the calls of a model."""

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter
from urllib.parse import urlsplit

from prometheus_client import Counter, Histogram

from chat_shell.models.configured.prices import Prices, cost_of
from chat_shell.models.ports import ModelAnswerEnd, ModelCall
from chat_shell.models.transport.observing import CallHooks
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


class CallMeter:
    """Counts the calls of a model, their time and tokens; each is a span."""

    def __init__(self, name: str, base_url: str) -> None:
        self._name = name
        self._attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": name,
            "server.address": urlsplit(base_url).hostname or "",
        }

    @contextmanager
    def observe(self, _call: ModelCall) -> Generator[CallHooks]:
        """Measure a call."""
        began_at, outcome = perf_counter(), LEFT
        with span_of(f"chat {self._name}", self._attributes, SpanKind.CLIENT) as span:

            def on_first() -> None:
                FIRST_SECONDS.labels(self._name).observe(perf_counter() - began_at)

            def on_end(end: ModelAnswerEnd) -> ModelAnswerEnd:
                nonlocal outcome
                outcome = ANSWERED
                self._note_end(end, span)
                return end

            try:
                yield CallHooks(on_first=on_first, on_end=on_end)
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


COST = Counter("ballast_model_cost_total", "Cost of model calls, in the currency of the list of models", ["model"])
COST_SAVED = Counter(
    "ballast_model_cost_saved_total", "What providers' caches took off the cost of model calls", ["model"]
)


class CallPricer:
    """Adds to the end of each answer what it cost, and counts it."""

    def __init__(self, name: str, prices: Prices) -> None:
        self._prices = prices
        self._cost = COST.labels(name)
        self._saved = COST_SAVED.labels(name)

    @contextmanager
    def observe(self, _call: ModelCall) -> Generator[CallHooks]:
        """Price a call."""
        yield CallHooks(on_end=self._price)

    def _price(self, end: ModelAnswerEnd) -> ModelAnswerEnd:
        cost = cost_of(end.usage, self._prices)
        if cost is None:
            return end
        self._cost.inc(cost.amount)
        self._saved.inc(cost.saved)
        return end.model_copy(update={"cost": cost})
