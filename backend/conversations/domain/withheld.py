"""What stands for the words of a turn that its reader may not read any more."""

from collections.abc import Sequence

from backend.conversations.domain.conversation_log import WITHHELD, Entry
from backend.conversations.domain.responses import ItemBody
from backend.knowledge.domain.labels import Access, Label, may_read
from shared.models.values import JsonObject, objects_in


def labels_in(log: Sequence[Entry]) -> frozenset[Label]:
    """Return the labels that any turn of a log has."""
    return frozenset([label for entry in log for label in entry.label])


def withheld_turns(log: Sequence[Entry], access: Access) -> frozenset[str]:
    """Return the turns that a reader with this access may not have."""
    return frozenset([entry.turn_id for entry in log if entry.label and not may_read(access, entry.label)])


def emptied_item(body: ItemBody) -> ItemBody:
    """Show a withheld item: a notice in place of the model's words, nothing of searches and arguments."""
    match body["type"]:
        case "message" if body["role"] == "assistant":
            return {**body, "content": [{"type": "output_text", "text": WITHHELD, "annotations": [], "logprobs": []}]}
        case "reasoning":
            return {**body, "content": []}
        case "file_search_call":
            return {**body, "queries": [], "results": None}
        case "function_call":
            return {**body, "arguments": "{}"}
        case _:
            return body


def emptied_body(body: JsonObject) -> JsonObject:
    """Show a withheld response."""
    return {**body, "output": [emptied_item(item) for item in objects_in(body["output"])]}
