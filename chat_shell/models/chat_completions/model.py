"""OpenAI-compatible chat completions, streamed: `POST {base_url}/chat/completions`."""

from dataclasses import dataclass

from chat_shell.models.chat_completions.assembler import AnswerAssembler, WeighedAnswerAssembler
from chat_shell.models.chat_completions.encoder import OPTIONAL_FIELDS, STANDARD_DIALECT, Dialect, encode_call
from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.provider_errors import refused_field
from chat_shell.models.transport.streaming import Avoidance


@dataclass(frozen=True)
class ChatCompletionsApi:
    """The `ProviderApi` of servers with OpenAI's chat completions."""

    dialect: Dialect = STANDARD_DIALECT
    path: str = "/chat/completions"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the credential; see the protocol."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; see the protocol."""
        return encode_call(call, self.dialect)

    def assembler(self, call: ModelCall) -> AnswerAssembler:
        """Return what reads the answer to a call."""
        kind = AnswerAssembler if call.parameters.top_logprobs is None else WeighedAnswerAssembler
        return kind(follows_results=call.messages[-1].role == "tool")

    def avoiding(self, status: int, body: bytes) -> Avoidance | None:
        """Return the API without a field that the server refuses; without reasoning for this call alone."""
        refused = refused_field(status, body, OPTIONAL_FIELDS)
        dialect = None if refused is None else self.dialect.without(refused)
        if dialect is None:
            return None
        return Avoidance(ChatCompletionsApi(dialect), is_lasting=dialect.unread == self.dialect.unread)
