"""The answer of a tool, before its documents are numbered and rendered for the model."""

from pydantic import Field

from shared.models.values import AttributeValue, JsonObject, Place, Value


class FoundDocument(Value):
    """A piece of text that a tool found, not yet numbered.

    `metadata` is shown to the model in its own key order, `attributes` to clients alone. `other_names` are those of
    documents with the same bytes.
    """

    file_id: str
    title: str
    metadata: JsonObject
    content: str
    score: float = 0.0
    attributes: dict[str, AttributeValue] = Field(default={})
    place: Place | None = None
    other_names: tuple[str, ...] = ()


class ToolAnswer(Value):
    """The result of a tool call: documents, or else a text for the model.

    `structured` is what the text says, as a JSON object; models are not shown it.
    """

    documents: tuple[FoundDocument, ...] = ()
    text: str = ""
    failed: bool = False
    structured: JsonObject | None = None
