"""Attributes of documents, and the filters over them that a search may have, in OpenAI's form."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from backend.foundation.domain.json_objects import at_most
from shared.errors import InvalidRequest

MAX_ATTRIBUTES = 16
MAX_ATTRIBUTE_KEY_CHARS = 64
MAX_ATTRIBUTE_VALUE_CHARS = 512
"""OpenAI's limits of attributes."""

MAX_FILTER_DEPTH = 8
MAX_FILTER_NODES = 64
"""The comparisons and compounds of one filter, which is tried on each document of a base."""

MAX_LISTED_VALUES = 64

Text = Annotated[str, StringConstraints(max_length=MAX_ATTRIBUTE_VALUE_CHARS)]
Scalar = bool | int | float | Text
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ATTRIBUTE_KEY_CHARS)]
Attributes = Annotated[dict[Key, Scalar], Field(max_length=MAX_ATTRIBUTES), at_most(MAX_ATTRIBUTES)]
"""Key-value pairs of a document; values are texts, numbers, true or false."""


class _Clause(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Comparison(_Clause):
    """Compares one attribute with a value. Values of different kinds are unequal, and none is greater."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte"]
    key: Key
    value: Scalar


class Membership(_Clause):
    """Asks whether one attribute equals one of some values."""

    type: Literal["in", "nin"]
    key: Key
    value: Annotated[list[Scalar], Field(min_length=1, max_length=MAX_LISTED_VALUES)]


class Compound(_Clause):
    """Joins filters: all of them must match, or one."""

    type: Literal["and", "or"]
    filters: Annotated[list["Filter"], Field(min_length=1, max_length=MAX_FILTER_NODES)]


Filter = Annotated[Comparison | Membership | Compound, Field(discriminator="type")]


def check_filter(given: Filter, param: str) -> None:
    """Check the depth and the size of a filter.

    Raises:
        InvalidRequest: it is too deep or too large; `param` is the name of its field.
    """
    depth, count, level = 0, 0, [given]
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > MAX_FILTER_DEPTH or count > MAX_FILTER_NODES:
            raise InvalidRequest(
                f"A filter is at most {MAX_FILTER_DEPTH} levels deep and has at most {MAX_FILTER_NODES} parts.",
                param=param,
            )
        level = [part for one in level if isinstance(one, Compound) for part in one.filters]


def matches(given: Filter, attributes: Mapping[str, Scalar]) -> bool:
    """Tell whether attributes pass a filter; an attribute that is not there passes `ne` and `nin` alone."""
    match given:
        case Compound(type="and"):
            return all(matches(part, attributes) for part in given.filters)
        case Compound():
            return any(matches(part, attributes) for part in given.filters)
        case Membership():
            held = attributes.get(given.key)
            return any(_are_equal(held, value) for value in given.value) == (given.type == "in")
        case Comparison(type="eq" | "ne"):
            return _are_equal(attributes.get(given.key), given.value) == (given.type == "eq")
        case Comparison():
            return _is_ordered(given.type, attributes.get(given.key), given.value)


def _are_equal(held: Scalar | None, value: Scalar) -> bool:
    # Python holds True equal to 1.
    return held == value and isinstance(held, bool) == isinstance(value, bool)


def _is_ordered(operator: str, held: Any, value: Any) -> bool:
    if _order_of(held) is None or _order_of(held) != _order_of(value):
        return False
    return {"gt": held > value, "gte": held >= value, "lt": held < value, "lte": held <= value}[operator]


def _order_of(value: object) -> str | None:
    """Name the order in which a value has a place; true and false have none."""
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None
