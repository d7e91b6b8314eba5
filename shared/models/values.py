"""The base of every value that crosses a border."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """An immutable value; an unknown field is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
