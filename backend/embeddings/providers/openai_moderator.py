"""A moderation model behind OpenAI's `POST /moderations`."""

from backend.embeddings.domain import ModerationInput
from backend.embeddings.providers.json_calls import AnswerBounds, JsonCalls, told_as_unavailable
from shared.errors import ModelProtocolViolated
from shared.models.values import JsonObject, JsonValue, objects_in

MODERATIONS_PATH = "/moderations"

_BYTES_OF_RESULT = 8_192
_VALUES_OF_RESULT = 256
"""OpenAI's thirteen categories, each with a truth, a score and what it applies to, take a third of both."""


class OpenAIModerator:
    """Implements `backend.embeddings.ports.Moderator`."""

    def __init__(self, calls: JsonCalls, model: str) -> None:
        self._calls = calls
        self._model = model

    async def judge(self, given: ModerationInput) -> JsonObject:
        """Return the provider's answer as it is."""
        count = len(given) if isinstance(given, list) and isinstance(given[0], str) else 1
        bounds = AnswerBounds(_BYTES_OF_RESULT * (count + 1), _VALUES_OF_RESULT * (count + 1))
        with told_as_unavailable():
            return _check(await self._calls.post({"model": self._model, "input": given}, bounds), count)


def _check(answer: JsonValue, count: int) -> JsonObject:
    """Check what clients read of an answer: ids, and for each of `count` inputs a flag with categories and scores."""
    found = answer if isinstance(answer, dict) else {}
    results = objects_in(found.get("results"))
    are_named = all(isinstance(found.get(name), str) for name in ("id", "model"))
    if not are_named or len(results) != count or not all(map(_is_result, results)):
        raise ModelProtocolViolated("the moderation model answered with no result for each input")
    return found


def _is_result(result: JsonObject) -> bool:
    maps = (result.get("categories"), result.get("category_scores"))
    return isinstance(result.get("flagged"), bool) and all(isinstance(each, dict) for each in maps)
