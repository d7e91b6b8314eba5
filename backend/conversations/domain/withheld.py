"""Replace the text of turns that a reader may no longer read."""

from collections.abc import Mapping, Sequence

from backend.conversations.domain.conversation_log import WITHHELD, Entry
from backend.conversations.domain.responses import ItemBody
from backend.knowledge.domain.labels import Access, Label, may_read
from shared.models.values import JsonObject, objects_in
from shared.prompts.summary import is_left_out_mark

_EMPTIED: Mapping[str, JsonObject] = {
    "reasoning": {"content": []},
    "file_search_call": {"queries": [], "results": None},
    "mcp_call": {"arguments": "{}", "output": None, "error": None},
    "function_call": {"arguments": "{}"},
    "custom_tool_call": {"input": ""},
}
"""What stands in withheld items of these types in the place of what they said."""


def labels_in(log: Sequence[Entry]) -> frozenset[Label]:
    """Return the labels of all turns of a log."""
    return frozenset([label for entry in log for label in entry.label])


def find_withheld_turns(log: Sequence[Entry], access: Access) -> frozenset[str]:
    """Return the ids of the turns that a reader with this access may not read."""
    return frozenset([entry.turn_id for entry in log if entry.label and not may_read(access, entry.label)])


def empty_item(body: ItemBody, *, with_users: bool = False) -> ItemBody:
    """Return a withheld item with a notice as the model's text, and without queries, results and arguments.

    What users gave is taken out too if asked: in a shared conversation it may be somebody else's.
    """
    match body["type"]:
        case "message" if body["role"] != "assistant" and (with_users or _is_summary(body)):
            return {**body, "content": [{"type": "input_text", "text": WITHHELD}]}
        case "function_call_output" | "custom_tool_call_output" if with_users:
            return {**body, "output": WITHHELD}
        case "message" if body["role"] == "assistant":
            return {**body, "content": [{"type": "output_text", "text": WITHHELD, "annotations": [], "logprobs": []}]}
        case kind:
            return {**body, **_EMPTIED.get(str(kind), {})}


def _is_summary(body: ItemBody) -> bool:
    """Whether a message of the user is a summary that their client has carried."""
    return any(is_left_out_mark(str(part.get("text"))) for part in objects_in(body["content"]))


def empty_body(body: JsonObject) -> JsonObject:
    """Return the body of a withheld response, with all its items emptied."""
    return {**body, "output": [empty_item(item) for item in objects_in(body["output"])]}
