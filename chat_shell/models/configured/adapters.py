"""The table of provider APIs and their adapters."""

from collections.abc import Callable, Mapping

from chat_shell.models.anthropic_messages.encoder import MessagesForm
from chat_shell.models.anthropic_messages.model import AnthropicMessagesApi
from chat_shell.models.chat_completions.encoder import Dialect
from chat_shell.models.chat_completions.model import ChatCompletionsApi
from chat_shell.models.configured.entries import ModelApi, ModelEntry
from chat_shell.models.responses.model import ResponsesApi
from chat_shell.models.transport.streaming import ProviderApi


def api_of(entry: ModelEntry) -> ProviderApi:
    """Return the provider API of a model."""
    return _API_OF_ENTRY[entry.api](entry)


def _chat_completions(entry: ModelEntry) -> ProviderApi:
    return ChatCompletionsApi(Dialect(token_limit=entry.max_tokens_field))


def _responses(entry: ModelEntry) -> ProviderApi:
    return ResponsesApi()


def _anthropic_messages(entry: ModelEntry) -> ProviderApi:
    return AnthropicMessagesApi(MessagesForm(max_output_tokens=entry.max_output_tokens, thinking=entry.thinking))


_API_OF_ENTRY: Mapping[str, Callable[[ModelEntry], ProviderApi]] = {
    ModelApi.CHAT_COMPLETIONS: _chat_completions,
    ModelApi.RESPONSES: _responses,
    ModelApi.ANTHROPIC_MESSAGES: _anthropic_messages,
}
