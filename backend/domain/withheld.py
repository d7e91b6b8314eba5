"""Labels: which words came from knowledge, and what stands for them once their reader may not read it any more.

A turn's label names the bases whose text its messages may hold: those that it could read itself, and those of
the earlier turns that its model was shown.
"""

from collections.abc import Collection, Sequence
from typing import Any, cast

from backend.domain.conversation_log import Entry
from backend.domain.notices import WITHHELD
from backend.domain.responses import ItemBody


def labels_in(log: Sequence[Entry]) -> frozenset[str]:
    """Return the bases that any turn of a log is labelled with."""
    return frozenset([base_id for entry in log for base_id in entry.label])


def withheld_turns(log: Sequence[Entry], readable: Collection[str]) -> frozenset[str]:
    """Return the turns whose label names a base that is not among the readable ones."""
    known = frozenset(readable)
    return frozenset([entry.turn_id for entry in log if entry.label and not known.issuperset(entry.label)])


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


def emptied_body(body: dict[str, Any]) -> dict[str, Any]:
    """Show a withheld response."""
    return {**body, "output": [emptied_item(item) for item in cast("list[ItemBody]", body["output"])]}


def searched_bases(body: dict[str, Any]) -> frozenset[str]:
    """Return the bases of a response that holds results of a search."""
    if not any(item.get("results") for item in cast("list[ItemBody]", body["output"])):
        return frozenset()
    tools = cast("list[dict[str, Any]]", body["tools"])
    return frozenset(base_id for tool in tools for base_id in tool.get("vector_store_ids", ()))
