"""The models that the operator configured, as the port `ModelDirectory`."""

from collections.abc import Mapping
from functools import partial

import aiohttp

from chat_shell.models.configured.adapters import api_of
from chat_shell.models.configured.entries import ModelConfigurationError, ModelEntry
from chat_shell.models.configured.failure_log import FailureLog
from chat_shell.models.configured.llm_log import log_answer, log_request
from chat_shell.models.ports import Model
from chat_shell.models.telemetry.calls import CallMeter
from chat_shell.models.telemetry.costs import CallPricer
from chat_shell.models.transport.observing import ObserveCall
from chat_shell.models.transport.streaming import Endpoint, StreamedModel
from shared.clock import Clock
from shared.errors import UnknownModel
from shared.models.events import ModelCard
from shared.outgoing import NO_PROXY, OutgoingProxy

DEFAULT_IDLE_SECONDS = 60.0


class ConfiguredModels:
    """The port `ModelDirectory`."""

    def __init__(self, models: Mapping[str, tuple[ModelCard, Model]]) -> None:
        self._models = models

    def cards(self) -> tuple[ModelCard, ...]:
        """Return the offered models in the operator's order; the first is the default."""
        return tuple(card for card, _ in self._models.values())

    def card(self, name: str) -> ModelCard:
        """Return the card of a model, or raise UnknownModel."""
        return self._find(name)[0]

    def model(self, name: str) -> Model:
        """Return the adapter of a model, or raise UnknownModel."""
        return self._find(name)[1]

    def _find(self, name: str) -> tuple[ModelCard, Model]:
        found = self._models.get(name)
        if found is None:
            raise UnknownModel(f"the model {name!r} does not exist", param="model")
        return found


def build_models(
    entries: tuple[ModelEntry, ...],
    session: aiohttp.ClientSession,
    clock: Clock,
    *,
    idle_timeout_seconds: float = DEFAULT_IDLE_SECONDS,
    logs_requests: bool = False,
    proxy: OutgoingProxy = NO_PROXY,
) -> ConfiguredModels:
    """Build the directory; the caller closes the session.

    Of several entries with the same name the first one is used. `logs_requests` logs whole requests and answers, with
    the text of users in them.

    Raises:
        ModelConfigurationError: there is no entry.
    """
    if not entries:
        raise ModelConfigurationError("no model is configured")
    models: dict[str, tuple[ModelCard, Model]] = {}
    for entry in entries:
        if entry.name not in models:
            endpoint = _endpoint(entry, idle_timeout_seconds, proxy)
            observers = _observers(entry, clock, logs_requests=logs_requests)
            on_request = log_request if logs_requests else None
            model = StreamedModel(endpoint, api_of(entry), session, clock, observers, on_request)
            models[entry.name] = _card(entry), model
    return ConfiguredModels(models)


def _card(entry: ModelEntry) -> ModelCard:
    return ModelCard(
        name=entry.name,
        context_window_tokens=entry.context_window_tokens,
        max_output_tokens=entry.max_output_tokens,
        extra_parameters=entry.taken_parameters,
    )


def _endpoint(entry: ModelEntry, idle_timeout_seconds: float, proxy: OutgoingProxy) -> Endpoint:
    return Endpoint(
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        model=entry.model,
        idle_timeout_seconds=idle_timeout_seconds,
        proxy=proxy.for_address(entry.base_url),
    )


def _observers(entry: ModelEntry, clock: Clock, *, logs_requests: bool) -> tuple[ObserveCall, ...]:
    return (
        *([partial(log_answer, clock)] if logs_requests else []),
        CallMeter(entry.name, entry.base_url).observe,
        FailureLog(entry.base_url).observe,
        *([CallPricer(entry.name, entry.prices).observe] if entry.prices is not None else []),
    )
