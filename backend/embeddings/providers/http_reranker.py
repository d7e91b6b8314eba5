"""A model that scores texts, behind `POST /rerank` as vLLM, Jina, Cohere, Infinity and TEI have it."""

from collections.abc import Sequence
from math import isfinite

from backend.embeddings.providers.json_calls import AnswerBounds, JsonCalls, told_as_unavailable
from shared.errors import ModelError, ModelProtocolViolated, ModelRequestRejected
from shared.models.values import JsonObject, JsonValue, objects_in

RERANK_PATH = "/rerank"

MAX_QUERY_CHARACTERS = 4_000
MAX_TEXT_CHARACTERS = 8_000
"""What is longer is cut: a chunk is far shorter, and most models read 512 tokens of question and text together."""

_BYTES_OF_RESULT = 1_024
_LONGEST_ESCAPE = 12
"""The bytes of a character beyond the basic plane, as JSON may write it in an answer that repeats the texts."""
_VALUES_OF_RESULT = 16


class HttpReranker:
    """Implements `backend.embeddings.ports.ScoringModel`."""

    def __init__(self, calls: JsonCalls, model: str) -> None:
        self._calls = calls
        self._model = model
        self._says_texts = False

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Return a score for each text, in order."""
        shown = [text[:MAX_TEXT_CHARACTERS] for text in texts]
        size = _BYTES_OF_RESULT * (len(shown) + 1) + _LONGEST_ESCAPE * sum(map(len, shown))
        bounds = AnswerBounds(size, _VALUES_OF_RESULT * (len(shown) + 1))
        with told_as_unavailable():
            answer = await self._post(query[:MAX_QUERY_CHARACTERS], shown, bounds)
            return _scores_in(answer, len(shown))

    async def _post(self, query: str, texts: list[str], bounds: AnswerBounds) -> JsonValue:
        """Send the texts under the name that the server knows: TEI calls them otherwise than all others."""
        try:
            return await self._calls.post(self._body(query, texts), bounds)
        except ModelRequestRejected:
            self._says_texts = not self._says_texts
            try:
                return await self._calls.post(self._body(query, texts), bounds)
            except ModelError:
                self._says_texts = not self._says_texts
                raise

    def _body(self, query: str, texts: list[str]) -> JsonObject:
        if self._says_texts:
            return {"query": query, "texts": texts, "truncate": True}
        body: JsonObject = {"query": query, "documents": texts, "top_n": len(texts)}
        return body | {"model": self._model} if self._model else body


def _scores_in(answer: JsonValue, count: int) -> tuple[float, ...]:
    found = objects_in(answer.get("results") if isinstance(answer, dict) else answer)
    scores = {
        index: each.get("relevance_score", each.get("score"))
        for each in found
        if type(index := each.get("index")) is int
    }
    numbers = [scores.get(index) for index in range(count)]
    if len(found) != count or not all(_is_number(number) for number in numbers):
        raise ModelProtocolViolated("the reranker answered with no score for each text")
    return tuple(float(number) for number in numbers if isinstance(number, float | int))


def _is_number(value: JsonValue) -> bool:
    return type(value) in (float, int) and isinstance(value, float | int) and isfinite(value)
