"""Anthropic's Messages ANTHROPIC_MESSAGES, streamed: `POST {base_url}/messages`."""

from dataclasses import dataclass, replace

from chat_shell.models.anthropic_messages.assembler import MessageAssembler
from chat_shell.models.anthropic_messages.encoder import MessagesForm, encode_messages_request
from chat_shell.models.anthropic_messages.thinking import ThinkingMode
from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.streaming import Avoidance

API_VERSION = "2023-06-01"

_REFUSED_BLOCKS = (b"Invalid `signature`", b"Invalid signature", b"expected `thinking`", b"start with a thinking block")
"""How the API refuses thinking blocks: of another model or organisation, or missing where it demands them."""


@dataclass(frozen=True)
class AnthropicMessagesApi:
    """The `ProviderApi` of Anthropic's Messages."""

    form: MessagesForm
    path: str = "/messages"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the credential and the version of the API; see the protocol."""
        version = {"anthropic-version": API_VERSION}
        return version | {"x-api-key": api_key} if api_key else version

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; see the protocol."""
        return encode_messages_request(call, self.form)

    def assembler(self, call: ModelCall) -> MessageAssembler:
        """Return what reads the answer to a call."""
        return MessageAssembler()

    def avoiding(self, status: int, body: bytes) -> Avoidance | None:
        """Return the API with the mode of thinking that the model has, or, for this call alone, without thinking."""
        if status != 400 or b"thinking" not in body:
            return None
        if self.form.sends_thinking and any(words.lower() in body.lower() for words in _REFUSED_BLOCKS):
            return Avoidance(self._with(sends_thinking=False), is_lasting=False)
        if b"not supported" not in body:
            return None
        # The refusal of one mode recommends the other, so the mode that is sent decides.
        other = ThinkingMode.BUDGET if self.form.thinking is ThinkingMode.ADAPTIVE else ThinkingMode.ADAPTIVE
        return Avoidance(self._with(thinking=other))

    def _with(self, **changes: object) -> "AnthropicMessagesApi":
        return replace(self, form=replace(self.form, **changes))
