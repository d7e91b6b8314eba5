"""The models that the operator configured, as the port `ModelDirectory`."""

from collections.abc import Callable, Mapping
from functools import partial

import aiohttp

from chat_shell.models.anthropic_messages.encoder import AnthropicMessagesApi, MessagesForm
from chat_shell.models.chat_completions.encoder import ChatCompletionsApi, Dialect
from chat_shell.models.configured.cache_rules import breakpoint_ttl, cache_control_of
from chat_shell.models.configured.entries import ModelApi, ModelConfigurationError, ModelEntry
from chat_shell.models.configured.llm_log import FailureLog, log_answer, log_request
from chat_shell.models.ports import Model
from chat_shell.models.responses.model import ResponsesApi
from chat_shell.models.telemetry.calls import CallMeter, CallPricer
from chat_shell.models.transport.diagnoses import LastAnswers
from chat_shell.models.transport.observing import ObserveCall
from chat_shell.models.transport.streaming import Endpoint, ProviderApi, StreamedModel
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
            if endpoint.last_answers is not None:
                observers += (endpoint.last_answers.observe,)
            on_request = log_request if logs_requests else None
            model = StreamedModel(endpoint, api_of(entry), session, clock, observers, on_request)
            models[entry.name] = _card(entry), model
    return ConfiguredModels(models)


def _card(entry: ModelEntry) -> ModelCard:
    rule = entry.cache_rule
    return ModelCard(
        name=entry.name,
        context_window_tokens=entry.context_window_tokens,
        max_output_tokens=entry.max_output_tokens,
        extra_parameters=entry.taken_parameters,
        cache_minimum_tokens=rule.minimum_tokens if rule is not None else 0,
        cache_ttl_seconds=rule.ttl_seconds if rule is not None else 0,
        compact_from_tokens=entry.compact_from_tokens,
    )


def _endpoint(entry: ModelEntry, idle_timeout_seconds: float, proxy: OutgoingProxy) -> Endpoint:
    return Endpoint(
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        model=entry.model,
        idle_timeout_seconds=idle_timeout_seconds,
        proxy=proxy.for_address(entry.base_url),
        affinity_header=entry.affinity_header,
        cache_salt=entry.cache_salt.get_secret_value() if entry.cache_salt else None,
        last_answers=LastAnswers() if entry.is_diagnosed else None,
    )


def _observers(entry: ModelEntry, clock: Clock, *, logs_requests: bool) -> tuple[ObserveCall, ...]:
    prices = entry.full_prices
    return (
        *([partial(log_answer, clock)] if logs_requests else []),
        CallMeter(entry.name, entry.base_url).observe,
        FailureLog(entry.base_url).observe,
        *([CallPricer(entry.name, prices).observe] if prices is not None else []),
    )


def api_of(entry: ModelEntry) -> ProviderApi:
    """Return the provider API of a model."""
    return _API_OF_ENTRY[entry.api](entry)


def _chat_completions(entry: ModelEntry) -> ProviderApi:
    ttl = breakpoint_ttl(entry.cache_rule)
    return ChatCompletionsApi(Dialect(token_limit=entry.max_tokens_field, breakpoint_ttl=ttl))


def _responses(entry: ModelEntry) -> ProviderApi:
    return ResponsesApi(breakpoint_ttl=breakpoint_ttl(entry.cache_rule))


def _anthropic_messages(entry: ModelEntry) -> ProviderApi:
    mark = cache_control_of(entry.cache_rule)
    form = MessagesForm(entry.max_output_tokens, entry.thinking, mark=mark, is_diagnosed=entry.is_diagnosed)
    return AnthropicMessagesApi(form)


_API_OF_ENTRY: Mapping[str, Callable[[ModelEntry], ProviderApi]] = {
    ModelApi.CHAT_COMPLETIONS: _chat_completions,
    ModelApi.RESPONSES: _responses,
    ModelApi.ANTHROPIC_MESSAGES: _anthropic_messages,
}
