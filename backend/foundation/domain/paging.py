"""Lists in pages, as OpenAI cuts them."""

from typing import Literal

from pydantic import BaseModel, Field

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class PageQuery(BaseModel):
    """Which page: up to `limit` objects behind the object `after`."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None

    @property
    def descending(self) -> bool:
        """Whether the newest come first."""
        return self.order == "desc"
