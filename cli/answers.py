"""Reading values out of JSON answers, whose form the server alone guarantees."""

from typing import cast

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


def number_at(answer: Answer, name: str) -> int:
    """Return a whole number; 0 where it is missing or null."""
    value = answer.get(name)
    return int(value) if isinstance(value, int | float) else 0
