"""What reads pictures, what it says of one, and how long it may take."""

from enum import StrEnum
from typing import NamedTuple

from backend.embeddings.domain import ProviderModel
from shared.models.values import Value


class OcrEngine(StrEnum):
    """What finds the text in pictures: nothing, an engine on this machine, or a vision model of a provider."""

    OFF = "off"
    LOCAL = "local"
    MODEL = "model"


class PictureTime(NamedTuple):
    """How long one picture may take, and all pictures of one document together."""

    seconds: float = 60.0
    document_seconds: float = 600.0


class OcrOptions(NamedTuple):
    """The engine that the operator has chosen; `model` is set where that is a model."""

    engine: OcrEngine = OcrEngine.OFF
    model: ProviderModel | None = None
    time: PictureTime = PictureTime()


class PictureAnswer(Value):
    """The text of a picture, empty where there is none; or why it was not read."""

    text: str = ""
    failure: str = ""
