"""Documents that a tool found."""

from typing import Any

from shared.models.values import Value


class FoundDocument(Value):
    """A piece of text that a tool found, not yet numbered; `metadata` is shown in its own order."""

    file_id: str
    title: str
    metadata: dict[str, Any]
    content: str
    score: float = 0.0
