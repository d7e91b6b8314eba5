"""The models that the operator configured, as the port `ModelDirectory`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chat_shell.models.chat_completions.encoder import Dialect
from chat_shell.models.chat_completions.model import ChatCompletionsModel, Endpoint
from chat_shell.models.configured.entries import ModelApi, ModelConfigurationError, ModelEntry
from chat_shell.models.configured.llm_log import LoggedModel, log_request
from chat_shell.models.ports import Model
from chat_shell.models.transport.session import ProviderSession
from shared.clock import Clock
from shared.errors import UnknownModel
from shared.models.events import ModelCard


@dataclass(frozen=True)
class ModelOptions:
    """Options of all models; `log_requests` logs whole requests and answers, with the text of users in them."""

    idle_timeout_seconds: float = 60.0
    log_requests: bool = False


class ConfiguredModels:
    """Offer models by name. Close it after the last turn."""

    def __init__(self, models: Mapping[str, tuple[ModelCard, Model]], session: ProviderSession) -> None:
        self._models = models
        self._session = session

    def cards(self) -> tuple[ModelCard, ...]:
        """Return the offered models in the operator's order: the first is for turns that name none."""
        return tuple(card for card, _ in self._models.values())

    def card(self, name: str) -> ModelCard:
        """Return one, or raise UnknownModel."""
        return self._find(name)[0]

    def model(self, name: str) -> Model:
        """Return the adapter that reaches it, or raise UnknownModel."""
        return self._find(name)[1]

    async def close(self) -> None:
        """Close the connections to the providers."""
        await self._session.close()

    def _find(self, name: str) -> tuple[ModelCard, Model]:
        found = self._models.get(name)
        if found is None:
            raise UnknownModel(f"the model {name!r} does not exist", param="model")
        return found


def configured_models(
    entries: tuple[ModelEntry, ...],
    clock: Clock,
    options: ModelOptions | None = None,
    session: ProviderSession | None = None,
) -> ConfiguredModels:
    """Build the directory. Of entries with one name the first holds, so put the single model before the file's.

    Raises:
        ModelConfigurationError: there is no entry.
    """
    if not entries:
        raise ModelConfigurationError("no model is configured")
    shared_session = session or ProviderSession()
    chosen = options or ModelOptions()
    models: dict[str, tuple[ModelCard, Model]] = {}
    for entry in entries:
        if entry.name not in models:
            models[entry.name] = (_card(entry), _ADAPTER_OF_API[entry.api](entry, chosen, shared_session, clock))
    return ConfiguredModels(models, shared_session)


def _card(entry: ModelEntry) -> ModelCard:
    return ModelCard(
        name=entry.name,
        context_window_tokens=entry.context_window_tokens,
        max_output_tokens=entry.max_output_tokens,
    )


def _chat_completions(entry: ModelEntry, options: ModelOptions, session: ProviderSession, clock: Clock) -> Model:
    endpoint = Endpoint(
        base_url=entry.base_url,
        api_key=entry.api_key.get_secret_value() if entry.api_key else None,
        model=entry.model,
        idle_timeout_seconds=options.idle_timeout_seconds,
        dialect=Dialect(token_limit=entry.max_tokens_field),
    )
    if not options.log_requests:
        return ChatCompletionsModel(endpoint, session, clock)
    return LoggedModel(ChatCompletionsModel(endpoint, session, clock, on_request=log_request), clock)


_ADAPTER_OF_API: dict[str, Callable[[ModelEntry, ModelOptions, ProviderSession, Clock], Model]] = {
    ModelApi.CHAT_COMPLETIONS: _chat_completions,
}
