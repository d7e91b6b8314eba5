"""The models that the operator configured, as the port `ModelDirectory`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp

from chat_shell.models.chat_completions.encoder import Dialect
from chat_shell.models.chat_completions.model import ChatCompletionsModel, Endpoint
from chat_shell.models.configured.entries import ModelApi, ModelConfigurationError, ModelEntry
from chat_shell.models.configured.failure_log import ReportedModel
from chat_shell.models.configured.llm_log import LoggedModel, log_request
from chat_shell.models.ports import Model
from shared.clock import Clock
from shared.errors import UnknownModel
from shared.models.events import ModelCard


@dataclass(frozen=True)
class ModelOptions:
    """Options of all models; `log_requests` logs whole requests and answers, with the text of users in them."""

    idle_timeout_seconds: float = 60.0
    log_requests: bool = False


_DEFAULT_OPTIONS = ModelOptions()


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


def configured_models(
    entries: tuple[ModelEntry, ...],
    session: aiohttp.ClientSession,
    clock: Clock,
    options: ModelOptions = _DEFAULT_OPTIONS,
) -> ConfiguredModels:
    """Build the directory; the caller closes the session.

    Of several entries with the same name the first one is used.

    Raises:
        ModelConfigurationError: there is no entry.
    """
    if not entries:
        raise ModelConfigurationError("no model is configured")
    models: dict[str, tuple[ModelCard, Model]] = {}
    for entry in entries:
        if entry.name not in models:
            models[entry.name] = (_card(entry), _ADAPTER_OF_API[entry.api](entry, options, session, clock))
    return ConfiguredModels(models)


def _card(entry: ModelEntry) -> ModelCard:
    return ModelCard(
        name=entry.name,
        context_window_tokens=entry.context_window_tokens,
        max_output_tokens=entry.max_output_tokens,
    )


def _chat_completions(entry: ModelEntry, options: ModelOptions, session: aiohttp.ClientSession, clock: Clock) -> Model:
    endpoint = Endpoint(
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        model=entry.model,
        idle_timeout_seconds=options.idle_timeout_seconds,
        dialect=Dialect(token_limit=entry.max_tokens_field),
    )
    if not options.log_requests:
        return ReportedModel(ChatCompletionsModel(endpoint, session, clock), entry.base_url)
    model = ChatCompletionsModel(endpoint, session, clock, on_request=log_request)
    return LoggedModel(ReportedModel(model, entry.base_url), clock)


_ADAPTER_OF_API: dict[str, Callable[[ModelEntry, ModelOptions, aiohttp.ClientSession, Clock], Model]] = {
    ModelApi.CHAT_COMPLETIONS: _chat_completions,
}
