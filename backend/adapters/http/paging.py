"""Lists in pages, as OpenAI cuts them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from backend.domain.item_bodies import without_results
from backend.domain.responses import ItemBody
from backend.domain.turn_request import FILE_SEARCH_RESULTS, Include

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


class ItemPageQuery(PageQuery):
    """A page of items, and what of them is shown beyond the usual."""

    include: list[Include] = Field(default=[], alias="include[]")


class ItemList(BaseModel):
    """A page of items; both ids are empty on an empty page."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool


PageParams = Annotated[PageQuery, Query()]
ItemPageParams = Annotated[ItemPageQuery, Query()]
IncludeParam = Annotated[list[Include], Query(alias="include[]")]


def item_list(bodies: Sequence[ItemBody], include: Sequence[Include], *, has_more: bool) -> ItemList:
    """Show a page of items."""
    shown = [shown_item(body, include) for body in bodies]
    return ItemList(
        data=shown,
        first_id=shown[0]["id"] if shown else "",
        last_id=shown[-1]["id"] if shown else "",
        has_more=has_more,
    )


def shown_item(body: ItemBody, include: Sequence[Include]) -> ItemBody:
    """Show an item, the results of a search only to who asks for them."""
    return body if FILE_SEARCH_RESULTS in include else without_results(body)
