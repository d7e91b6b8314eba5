"""Pages of lists, in the way of OpenAI's API."""

from typing import Literal

from pydantic import BaseModel, Field

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class PageQuery(BaseModel):
    """The request for a page: up to `limit` objects that follow the object `after`."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None

    @property
    def descending(self) -> bool:
        """Say whether the newest objects come first."""
        return self.order == "desc"
