"""Reading values out of JSON answers, whose form the server alone guarantees."""

import json
from typing import cast

from shared.models.values import Place

Answer = dict[str, object]


def json_object(value: object) -> Answer:
    """Return a JSON object; an empty one in place of anything else."""
    return cast(Answer, value) if isinstance(value, dict) else {}


def members_of(value: object) -> list[Answer]:
    """Return the objects of a JSON array; none in place of anything else."""
    return [json_object(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def part_at(answer: Answer, name: str) -> Answer:
    """Return an object that is a member of an answer."""
    return json_object(answer.get(name))


def objects_at(answer: Answer, name: str) -> list[Answer]:
    """Return the objects of an array that is a member of an answer."""
    return members_of(answer.get(name))


def text_at(answer: Answer, name: str) -> str:
    """Return a member as text; empty where it is missing or null."""
    value = answer.get(name)
    return "" if value is None else str(value)


def strings_at(answer: Answer, name: str) -> list[str]:
    """Return the texts of an array that is a member of an answer."""
    value = answer.get(name)
    return [str(each) for each in cast(list[object], value)] if isinstance(value, list) else []


def passage_name(passage: Answer, name: str) -> str:
    """Return the names of a passage's document, and where it stands in it: `contract.pdf, p. 7 (also c.pdf)`."""
    place = str(Place.model_validate(part_at(passage, "place"), extra="ignore"))
    named = f"{text_at(passage, name)}, {place}" if place else text_at(passage, name)
    others = strings_at(passage, "other_names")
    return f"{named} (also {', '.join(others)})" if others else named


def number_at(answer: Answer, name: str) -> int:
    """Return a whole number; 0 where it is missing or null."""
    value = answer.get(name)
    return int(value) if isinstance(value, int | float) else 0


def text_of_message(message: Answer) -> str:
    """Return what a message says, with its parts and calls of tools as JSON, each call on a line of its own."""
    content = message.get("content")
    parts = [content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)] if content else []
    calls = objects_at(message, "tool_calls")
    return "\n".join([*parts, *(json.dumps(call, ensure_ascii=False) for call in calls)])
