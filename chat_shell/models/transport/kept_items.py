"""Keep what a provider wants back with an answer, and put it into its old place when the answer is sent again."""

from collections.abc import Iterator

import orjson

from shared.errors import ModelProtocolViolated
from shared.models.messages import AssistantMessage, OpaqueItem, ProviderReasoning, ToolCall
from shared.models.values import JsonObject

MAX_KEPT_CHARACTERS = 4_000_000
"""The limit for all of an answer: 128,000 tokens of reasoning, encrypted and in base64, are below 1,000,000."""


class KeptItems:
    """Collects the items of one answer for one provider API."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._items: list[OpaqueItem] = []
        self._characters = 0

    def add(self, item: JsonObject, after_characters: int, after_calls: int) -> None:
        """Keep an item, which stood behind so many characters of the text and so many tool calls.

        Raises:
            ModelProtocolViolated: the items are longer than any answer can make them.
        """
        content = orjson.dumps(item).decode()
        self._characters += len(content)
        if self._characters > MAX_KEPT_CHARACTERS:
            raise ModelProtocolViolated("the model's provider sent reasoning without an end")
        self._items.append(OpaqueItem(content=content, after_characters=after_characters, after_calls=after_calls))

    def build_reasoning(self) -> ProviderReasoning | None:
        """Return what goes into the log with the answer; None where there is nothing."""
        return ProviderReasoning(api=self._api, items=tuple(self._items)) if self._items else None


def pieces_of(message: AssistantMessage, api: str) -> Iterator[str | OpaqueItem | ToolCall]:
    """Yield texts, calls and what was kept for this API in the order in which the provider sent them.

    A place beyond the message counts as its end; items of other APIs are left out, and so are empty texts.
    """
    kept = message.reasoning
    said = called = 0
    for item in kept.items if kept is not None and kept.api == api else ():
        text = message.text[said : item.after_characters]
        if text:
            yield text
        yield from message.tool_calls[called : item.after_calls]
        said, called = max(said, item.after_characters), max(called, item.after_calls)
        yield item
    if message.text[said:]:
        yield message.text[said:]
    yield from message.tool_calls[called:]
