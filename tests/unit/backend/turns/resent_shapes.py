"""The ways in which clients write down what they have seen, in both APIs.

Which of them a client takes makes no difference to what is recognised: ids and statuses kept or dropped, a string or
parts, a refusal as text, messages of one answer joined or apart, nothing or an empty text beside calls.
"""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from backend.conversations.domain.responses import StoredResponse
from backend.openai_api.domain.turn_request import TurnRequest
from shared.models.messages import AssistantMessage
from shared.models.values import objects_in
from tests.fakes.parsed_requests import parse_chat_request, parse_turn_request

Item = dict[str, Any]
Seen = tuple[str, ...]
"""A message as a client has seen it: a role, and what was said; of an answer then each call, of a user's an image."""

BETWEEN = "\n\n"


class Form(NamedTuple):
    """What a model is shown otherwise, where it is shown what the client has written."""

    as_parts: bool
    is_split: bool


def any_form(rng: random.Random) -> Form:
    """Choose a form."""
    return Form(as_parts=rng.random() < 0.5, is_split=rng.random() < 0.5)


def as_counted(history: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return what counts of a history: of a model's text no line breaks, and no white space around it."""
    return tuple(
        (role, "".join(said[0].splitlines()).strip(), *said[1:]) if role == "assistant" else (role, *said)
        for role, *said in history
    )


def calls_of(seen: Seen) -> tuple[tuple[str, str, str], ...]:
    """Return id, name and arguments of each call of an answer."""
    told = seen[2:] if seen[0] == "assistant" else ()
    return tuple((told[place], told[place + 1], told[place + 2]) for place in range(0, len(told), 3))


def response_items(rng: random.Random, seen: Seen, form: Form) -> list[Item]:
    """Write a message as items of Responses."""
    if seen[0] == "tool":
        return [_with_id(rng, {"type": "function_call_output", "call_id": seen[1], "output": seen[2]}, "fco")]
    if seen[0] == "assistant":
        return _answer_items(rng, seen, form)
    parts: list[Item] = [{"type": "input_text", "text": seen[1]}]
    parts += [{"type": "input_image", "image_url": url, **_maybe(rng, {"detail": "auto"})} for url in seen[2:]]
    role = rng.choice(("system", "developer")) if seen[0] == "system" else seen[0]
    return [_with_id(rng, {"role": role, "content": _content(seen[1], parts, form)}, "msg")]


def _content(text: str, parts: list[Item], form: Form) -> str | list[Item]:
    return parts if form.as_parts or len(parts) > 1 else text


def _answer_items(rng: random.Random, seen: Seen, form: Form) -> list[Item]:
    calls = [
        _with_id(rng, {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}, "fc")
        for call_id, name, arguments in calls_of(seen)
    ]
    messages: list[Item] = []
    for text in _texts(seen[1], form) if seen[1] or not calls or rng.random() < 0.3 else ():
        part: Item = {"type": "output_text", "text": text, **_maybe(rng, {"annotations": [], "logprobs": []})}
        if rng.random() < 0.2:
            part = {"type": "refusal", "refusal": text}
        messages.append(_with_id(rng, {"role": "assistant", "content": rng.choice(([part], text))}, "msg"))
    reasoning: list[Item] = [{"type": "reasoning", "summary": []}] if rng.random() < 0.3 else []
    return [*reasoning, *messages, *calls]


def chat_messages(rng: random.Random, seen: Seen, form: Form) -> list[Item]:
    """Write a message as messages of Chat Completions."""
    if seen[0] == "tool":
        return [{"role": "tool", "tool_call_id": seen[1], "content": seen[2]}]
    if seen[0] != "assistant":
        parts: list[Item] = [{"type": "text", "text": seen[1]}]
        parts += [{"type": "image_url", "image_url": {"url": url}} for url in seen[2:]]
        return [{"role": seen[0], "content": _content(seen[1], parts, form)}]
    calls: list[Item] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls_of(seen)
    ]
    texts = _texts(seen[1], form)
    messages: list[Item] = [{"role": "assistant", **_said(rng, text, has_calls=bool(calls))} for text in texts]
    if calls:
        messages[-1]["tool_calls"] = calls
    return messages


def _said(rng: random.Random, text: str, *, has_calls: bool) -> Item:
    if not text and has_calls:
        return rng.choice(({}, {"content": None}, {"content": ""}, {"content": None, "refusal": None}))
    if text and rng.random() < 0.2:
        return rng.choice(({"content": None, "refusal": text}, {"refusal": text}, {"content": "", "refusal": text}))
    written: Item = {"content": rng.choice((text, [{"type": "text", "text": text}]))}
    return {**written, **_maybe(rng, {"refusal": None, "annotations": []})}


def response_request(items: Sequence[Item], fields: Item) -> TurnRequest:
    """Write a whole request for Responses."""
    return parse_turn_request(orjson.dumps({"input": items, **fields}))


def chat_request(messages: Sequence[Item], fields: Item) -> TurnRequest:
    """Write a whole request for Chat Completions, with settings in the form of Responses."""
    given = dict(fields)
    instructions = given.pop("instructions", None)
    leading: list[Item] = [{"role": "system", "content": instructions}] if instructions is not None else []
    if "tools" in given:
        given["tools"] = [_chat_tool(tool) for tool in given["tools"]]
    return parse_chat_request(orjson.dumps({"messages": [*leading, *messages], **given})).request


def _chat_tool(tool: Item) -> Item:
    if tool["type"] != "function":
        return tool
    return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}


def _texts(text: str, form: Form) -> list[str]:
    return text.split(BETWEEN) if form.is_split else [text]


def _maybe(rng: random.Random, fields: Item) -> Item:
    return fields if rng.random() < 0.5 else {}


def _with_id(rng: random.Random, item: Item, prefix: str) -> Item:
    fields: Item = {"id": f"{prefix}_{rng.random()}", "status": "completed"}
    return {**item, **_maybe(rng, fields), **(_maybe(rng, {"type": "message"}) if "role" in item else {})}


def answers_of(response: StoredResponse) -> tuple[AssistantMessage, ...]:
    """Return the messages of the model that an answer shows."""
    output = objects_in(response.body["output"])
    texts = [
        "".join([str(part.get("text") or part.get("refusal") or "") for part in objects_in(item["content"])])
        for item in output
        if item["type"] == "message"
    ]
    calls = [item for item in output if item["type"] == "function_call"]
    told = [{"call_id": call["call_id"], "name": call["name"], "arguments": call["arguments"]} for call in calls]
    messages = [AssistantMessage(text=text) for text in texts] or ([AssistantMessage(text="")] if told else [])
    last = [AssistantMessage.model_validate({"text": messages[-1].text, "tool_calls": told})] if messages else []
    return (*messages[:-1], *last)


def said_in(response: StoredResponse) -> Seen | None:
    """Return what a client sees of an answer, None where there is nothing to resend."""
    answers = answers_of(response)
    told = [field for message in answers for call in message.tool_calls for field in dict(call).values()]
    return ("assistant", BETWEEN.join([message.text for message in answers]), *told) if answers else None
