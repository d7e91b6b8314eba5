"""The base of every value that crosses a border, and scalars that survive each encoding."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field


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
