"""A response as OpenAI's Chat Completions shows it: one message with all that the turn said, and no search.

What was said in several messages of a turn, before a search and behind it, is one text here. Of a joined response each
lane is a choice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from backend.conversations.domain.item_bodies import BETWEEN_MESSAGES
from backend.conversations.domain.responses import ItemBody, ResponseStatus
from backend.openai_api.domain.response_object import ResponseBody, report_in
from shared.models.events import ErrorReport
from shared.models.values import JsonObject, JsonValue, Place, objects_in

CALLED: Mapping[JsonValue, tuple[str, str]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
}
"""What a message calls an item of this type, and the field of its text."""

Addresses = Mapping[str, str]
"""The address of each document at this server, by the id that citations have of it."""


class Citation(NamedTuple):
    """A document that a text cites; `[n]` begins at `start` in the text of the whole turn.

    `further` is what OpenAI's own citations have not: where the passage stands, and the document's other names.
    """

    file_id: str
    title: str
    start: int
    further: JsonObject


class Said(NamedTuple):
    """What a turn said, joined from all of its messages, and its calls of the client's functions.

    In an answer that was cut off a call may be, too.
    """

    content: str
    refusal: str
    reasoning: str
    citations: tuple[Citation, ...]
    calls: tuple[JsonObject, ...]
    logprobs: tuple[JsonObject, ...] = ()


def read_said(output: JsonValue) -> Said:
    """Join the items of a response's output."""
    items = objects_in(output)
    texts, refusals = list[str](), list[str]()
    citations: list[Citation] = []
    logprobs: list[JsonObject] = []
    length = 0
    for part in _parts(items, "message"):
        if part["type"] == "refusal":
            refusals.append(cast(str, part["refusal"]))
            continue
        text = cast(str, part["text"])
        start = length + len(BETWEEN_MESSAGES) if texts else 0
        citations += _citations(part, start)
        logprobs += objects_in(part["logprobs"])
        texts.append(text)
        length = start + len(text)
    return Said(
        content=BETWEEN_MESSAGES.join(texts),
        refusal=BETWEEN_MESSAGES.join(refusals),
        reasoning=BETWEEN_MESSAGES.join(cast(str, part["text"]) for part in _parts(items, "reasoning")),
        citations=tuple(citations),
        calls=tuple(_call(item) for item in items if item["type"] in CALLED),
        logprobs=tuple(logprobs),
    )


class Choice(NamedTuple):
    """One answer of a turn: the response, or the lane of a joined one, as it ended, and what it said."""

    ended: JsonObject
    said: Said


def choices_in(body: ResponseBody) -> tuple[Choice, ...]:
    """Return the answers of a response that has ended: one, or that of each lane."""
    output = objects_in(body["output"])
    lanes = objects_in(body.get("lanes") or [])
    if not lanes:
        return (Choice(body, read_said(output)),)
    return tuple(
        Choice(lane, read_said([item for item in output if item.get("response_id") == lane["response_id"]]))
        for lane in lanes
    )


def failure_in(choices: Iterable[Choice]) -> ErrorReport | None:
    """Return the first failure of one of the answers: with one of them the whole completion fails."""
    reports = (report_in(choice.ended) for choice in choices)
    return next((report for report in reports if report is not None), None)


def completion_body(body: ResponseBody, choices: Sequence[Choice], addresses: Addresses) -> JsonObject:
    """Make a whole `chat.completion` of a response that has ended and did not fail; both have the same id."""
    return {
        "id": body["id"],
        "object": "chat.completion",
        "created": body["created_at"],
        "model": body["model"],
        "choices": [_choice_body(index, choice, addresses) for index, choice in enumerate(choices)],
        "usage": completion_usage(body),
        "service_tier": "default",
        "system_fingerprint": None,
        "metadata": body["metadata"],
    }


def _choice_body(index: int, choice: Choice, addresses: Addresses) -> JsonObject:
    said = choice.said
    message: JsonObject = {
        "role": "assistant",
        "content": said.content or (None if said.calls or said.refusal else ""),
        "refusal": said.refusal or None,
        "annotations": url_citations(said, addresses),
    }
    if said.calls:
        message["tool_calls"] = list(said.calls)
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    logprobs = logprobs_body(said.logprobs)
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(choice)}


def logprobs_body(tokens: Sequence[JsonObject]) -> JsonObject | None:
    """Return what a choice tells of its tokens; None where nothing is known of them."""
    return {"content": list(tokens), "refusal": None} if tokens else None


def finish_reason(choice: Choice) -> str:
    """Return why the answer ended.

    OpenAI's list has no word for an answer that was stopped or whose process died: `length` says that it is not whole.
    """
    if choice.ended["status"] == ResponseStatus.COMPLETED:
        return "tool_calls" if choice.said.calls else "stop"
    details = cast("JsonObject | None", choice.ended["incomplete_details"])
    is_filtered = details is not None and details["reason"] == "content_filter"
    return "content_filter" if is_filtered else "length"


def completion_usage(body: ResponseBody) -> JsonObject | None:
    """Return the tokens used under Chat Completions' names, None where the provider reported nothing."""
    usage = cast("JsonObject | None", body["usage"])
    if usage is None:
        return None
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": usage["input_tokens_details"],
        "completion_tokens_details": usage["output_tokens_details"],
    }


def url_citations(said: Said, addresses: Addresses) -> list[JsonObject]:
    """Return the citations as annotations over their `[n]`; a document that is gone has no address and gets none."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "title": citation.title,
                "url": addresses[citation.file_id],
                "start_index": citation.start,
                "end_index": said.content.find("]", citation.start) + 1,
                **citation.further,
            },
        }
        for citation in said.citations
        if citation.file_id in addresses
    ]


def _parts(items: Iterable[ItemBody], kind: str) -> Iterator[JsonObject]:
    for item in items:
        if item["type"] == kind:
            yield from objects_in(item["content"])


def _citations(part: JsonObject, start: int) -> Iterator[Citation]:
    for annotation in objects_in(part["annotations"]):
        file_id, title = cast(str, annotation["file_id"]), cast(str, annotation["filename"])
        place = annotation.get("place")
        shown = title if place is None else f"{title}, {Place.model_validate(place)}"
        further = {name: annotation[name] for name in ("place", "other_names") if name in annotation}
        yield Citation(file_id, shown, start + cast(int, annotation["index"]), further)


def _call(item: ItemBody) -> JsonObject:
    kind, text = CALLED[item["type"]]
    return {"id": item["call_id"], "type": kind, kind: {"name": item["name"], text: item[text]}}
