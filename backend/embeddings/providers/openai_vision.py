"""A vision model behind OpenAI's `POST /chat/completions`, which vLLM, Ollama and others speak as well."""

from base64 import b64encode

from backend.embeddings.providers.json_calls import AnswerBounds, JsonCalls, told_as_unavailable
from shared.errors import ModelProtocolViolated, ModelRequestRejected
from shared.models.values import JsonObject, JsonValue, objects_in
from shared.prompts.pictures import NO_TEXT, READ_PICTURE
from shared.retries import RetryPolicy

COMPLETIONS_PATH = "/chat/completions"

_BOUNDS = AnswerBounds(1_048_576, 4_096)
"""A page has some 5,000 characters; what a model thinks about it may be longer."""

_FENCE = "```"


class OpenAIVisionModel:
    """Implements `backend.extraction.ports.PictureReader`."""

    def __init__(self, calls: JsonCalls, model: str, retry: RetryPolicy) -> None:
        self._calls = calls
        self._model = model
        self._retry = retry

    async def read_picture(self, picture: bytes) -> str:
        """Return the text that the model finds in a JPEG."""
        url = f"data:image/jpeg;base64,{b64encode(picture).decode()}"
        content: JsonValue = [
            {"type": "text", "text": READ_PICTURE},
            {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        ]
        body: JsonObject = {"model": self._model, "messages": [{"role": "user", "content": content}]}
        with told_as_unavailable():
            return _text_in(await self._retry.repeat(lambda: self._calls.post(body, _BOUNDS)))


def _text_in(answer: JsonValue) -> str:
    choices = objects_in(answer.get("choices")) if isinstance(answer, dict) else []
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict):
        raise ModelProtocolViolated("the vision model answered with something else than a message")
    if choices[0].get("finish_reason") == "length":
        raise ModelRequestRejected("the text of the picture is longer than the vision model may answer")
    text = message.get("content")
    if not isinstance(text, str) or message.get("refusal"):
        raise ModelRequestRejected("the vision model refused to read the picture")
    text = _without_fence(text.strip())
    return "" if text == NO_TEXT else text


def _without_fence(text: str) -> str:
    """Take away the marks of a block of code that models like to put around a text."""
    first, _, rest = text.partition("\n")
    if first.startswith(_FENCE) and rest.endswith(_FENCE):
        return rest.removesuffix(_FENCE).strip()
    return text
