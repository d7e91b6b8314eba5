"""Read what a provider tells of an answer's tokens: the log probability of each, and of what could have stood there.

The form is that of OpenAI's APIs, which other servers have too: `token`, `logprob`, `bytes` and `top_logprobs`.
"""

from chat_shell.models.ports import LogprobsFragment
from shared.models.json_text import encode_json
from shared.models.values import JsonObject, JsonValue, objects_in

MAX_LOGPROBS_CHARACTERS = 4_000_000
"""How much an answer's log probabilities may be as JSON; those of later tokens are left out."""

_UNLIKELY = -9999.0
"""What OpenAI's APIs say of a token that cannot stand somewhere: JSON has no infinite number."""

_OCTETS = range(256)


class TokenReader:
    """Reads the tokens of one answer; `is_full` once there were more than may be."""

    def __init__(self) -> None:
        self._characters_left = MAX_LOGPROBS_CHARACTERS
        self.is_full = False

    def read(self, given: JsonValue) -> LogprobsFragment | None:
        """Return the tokens of a frame; None where it has none, or no more may be."""
        listed = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        tokens = [token for token in map(_token, listed) if token is not None]
        if not tokens or self.is_full:
            return None
        text = encode_json(tokens, "logprobs").decode()
        self._characters_left -= len(text)
        self.is_full = self._characters_left < 0
        return None if self.is_full else LogprobsFragment(tokens=text)


def _token(given: JsonObject) -> JsonObject | None:
    plain = _alternative(given)
    if plain is None:
        return None
    others = given.get("top_logprobs")
    listed = objects_in([each for each in others if isinstance(each, dict)] if isinstance(others, list) else [])
    return {**plain, "top_logprobs": [other for other in map(_alternative, listed) if other is not None]}


def _alternative(given: JsonObject) -> JsonObject | None:
    token, logprob, octets = given.get("token"), given.get("logprob"), given.get("bytes")
    if not isinstance(token, str) or not isinstance(logprob, int | float):
        return None
    known = isinstance(octets, list) and all(isinstance(octet, int) and octet in _OCTETS for octet in octets)
    # The order of both bounds makes NaN the lower one.
    likely = min(max(_UNLIKELY, float(logprob)), 0.0)
    return {"token": token, "logprob": likely, "bytes": octets if known else list(token.encode())}
