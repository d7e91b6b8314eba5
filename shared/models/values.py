"""The base of every value that crosses a border, scalars that survive each encoding, and the type of JSON values."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
else:
    # pydantic accepts any object as it is: what stands here was read from JSON, and nobody pays for a second check.
    JsonValue = object

JsonObject: TypeAlias = dict[str, JsonValue]


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Return the objects of a JSON array, in order; none where the value is no array."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("lies outside of the years 1 to 9999") from error


# In UTC, because two instants of an hour that a zone repeats are never equal across zones (PEP 495).
Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]

# Bounded by what protobuf's int64 holds.
Count = Annotated[int, Field(ge=0, lt=2**63)]
PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Value(BaseModel):
    """An immutable value; an unknown field is an error, never ignored, and no number is infinite or NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
