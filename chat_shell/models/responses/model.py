"""OpenAI's Responses API, streamed: `POST {base_url}/responses`."""

from dataclasses import dataclass, replace

from chat_shell.models.ports import ModelCall
from chat_shell.models.responses.assembler import ResponseAssembler, WeighedResponseAssembler
from chat_shell.models.responses.encoder import REFUSABLE_FIELDS, encode_response_request
from chat_shell.models.transport.breakpoints import COMPARISON
from chat_shell.models.transport.provider_errors import find_refused_field
from chat_shell.models.transport.streaming import Avoidance

_REFUSED_REASONING = (b"invalid_encrypted_content", b"required following item", b"could not be decrypted")
"""How the API refuses reasoning items, for example of another organisation."""


@dataclass(frozen=True)
class ResponsesApi:
    """The `ProviderApi` of OpenAI's Responses; `left_out` names optional fields that the server refuses."""

    left_out: frozenset[str] = frozenset()
    sends_reasoning: bool = True
    breakpoint_ttl: str | None = None
    path: str = "/responses"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the credential; see the protocol."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; see the protocol."""
        return encode_response_request(
            call,
            left_out=self.left_out,
            sends_reasoning=self.sends_reasoning,
            breakpoint_ttl=self.breakpoint_ttl,
        )

    def assembler(self, call: ModelCall) -> ResponseAssembler:
        """Return what reads the answer to a call."""
        return ResponseAssembler() if call.parameters.top_logprobs is None else WeighedResponseAssembler()

    def avoid(self, status: int, body: bytes) -> Avoidance | None:
        """Return the API without a refused field, or, for this call alone, without reasoning that it cannot read."""
        if status == 400 and self.sends_reasoning and any(words in body for words in _REFUSED_REASONING):
            return Avoidance(replace(self, sends_reasoning=False), is_lasting=False)
        # A field of the options stands behind their name; refused by itself, it goes alone.
        refused = find_refused_field(status, body, (COMPARISON,)) or find_refused_field(status, body, REFUSABLE_FIELDS)
        if refused is None or refused in self.left_out:
            return None
        return Avoidance(replace(self, left_out=self.left_out | {refused}))
