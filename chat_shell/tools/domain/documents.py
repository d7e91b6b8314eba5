"""Documents that a tool found."""

from shared.models.values import JsonObject, Value


class FoundDocument(Value):
    """A piece of text that a tool found, not yet numbered; `metadata` is shown in its own order."""

    file_id: str
    title: str
    metadata: JsonObject
    content: str
    score: float = 0.0
