"""Request and response bodies that several routes share, as pydantic models for the OpenAPI document."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512

Shown = TypeVar("Shown")


class RequestBody(BaseModel):
    """The base of JSON bodies: no unknown field, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _printable(value: str) -> str:
    if not value.isprintable() or value != value.strip():
        raise ValueError("must be printable characters without blanks around them")
    return value


PrincipalName = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_printable)]
"""The id of a user or a tenant."""

Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=MAX_METADATA_KEY_CHARS)],
        Annotated[str, Field(max_length=MAX_METADATA_VALUE_CHARS)],
    ],
    Field(max_length=MAX_METADATA_PAIRS),
]
"""Key-value pairs of the caller, stored unchanged; the limits are OpenAI's."""


class ErrorDetail(BaseModel):
    """An error in OpenAI's four keys."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """The body of every error of this API."""

    error: ErrorDetail


class Deleted(BaseModel):
    """The answer to the deletion of an object."""

    id: str
    object: str
    deleted: Literal[True] = True


class ListPage(BaseModel, Generic[Shown]):
    """A page of objects in the form of OpenAI's list types."""

    object: Literal["list"] = "list"
    data: list[Shown]
    first_id: str
    last_id: str
    has_more: bool

    @classmethod
    def of(cls, data: Sequence[Shown], ids: Sequence[str], *, has_more: bool = False) -> Self:
        """Make a page from its objects and their ids; both ids of an empty page are empty."""
        first_id, last_id = (ids[0], ids[-1]) if ids else ("", "")
        return cls(data=list(data), first_id=first_id, last_id=last_id, has_more=has_more)


def unix_seconds(instant: datetime) -> int:
    """Return an instant as OpenAI writes it: whole seconds since the Unix epoch."""
    return int(instant.timestamp())


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request cannot be answered; `error.param` names the field."},
    "5XX": {"model": ErrorBody, "description": "The server, or a part behind it, failed."},
}
"""The error responses of every route, for the OpenAPI document."""
