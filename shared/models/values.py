"""The base class of the values that the services exchange, scalar types that fit every encoding, and JSON types."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import not_
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
else:
    # pydantic does not check a field of type object: such a value was read from JSON, and a second check costs time.
    JsonValue = object

JsonObject: TypeAlias = dict[str, JsonValue]


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Return the objects in a JSON array, in order; an empty list where the value is not an array."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("lies outside of the years 1 to 9999") from error


# Instants are kept in UTC: an instant in an hour that a time zone repeats never equals one of another zone (PEP 495).
Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]

# The bounds are those of int64 in protobuf.
Count = Annotated[int, Field(ge=0, lt=2**63)]
PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]

AttributeValue = bool | int | float | str
"""What a document's attributes may hold."""


class Value(BaseModel):
    """An immutable value; an unknown field is an error, and so is a number that is infinite or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Place(Value):
    """Where in its file a passage stands, as far as its format has places; rows count from 1, with the header.

    `last_page` is the page on which it ends, if that is another one. What is not known is left out.
    """

    page: int | None = Field(default=None, exclude_if=not_)
    last_page: int | None = Field(default=None, exclude_if=not_)
    slide: int | None = Field(default=None, exclude_if=not_)
    sheet: str | None = Field(default=None, exclude_if=not_)
    rows: tuple[int, int] | None = Field(default=None, exclude_if=not_)

    def __str__(self) -> str:
        """Write it as it stands behind the name of a file: `p. 7`, `slide 3`, `Q1, rows 2-9`."""
        pages = _span("p. ", "pp. ", (self.page, self.last_page or self.page)) if self.page else ""
        rows = _span("row ", "rows ", self.rows) if self.rows else ""
        return ", ".join(filter(None, (pages, f"slide {self.slide}" if self.slide else "", self.sheet, rows)))


def _span(of_one: str, of_many: str, span: tuple[int, int]) -> str:
    first, last = span
    return f"{of_one}{first}" if first == last else f"{of_many}{first}-{last}"
