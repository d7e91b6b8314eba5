"""Pages of items in the form of OpenAI's API."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from backend.conversations.domain.item_bodies import FILE_SEARCH_RESULTS, Include, without_results
from backend.conversations.domain.responses import ItemBody
from backend.foundation.domain.paging import PageQuery
from shared.models.values import JsonObject


class ItemPageQuery(PageQuery):
    """The request for a page of items; `include` names the fields that are shown only on request."""

    include: list[Include] = Field(default=[], alias="include[]")


class ItemList(BaseModel):
    """A page of items; both ids are empty on an empty page."""

    object: Literal["list"] = "list"
    data: list[JsonObject]
    first_id: str
    last_id: str
    has_more: bool


def item_list(bodies: Sequence[ItemBody], include: Sequence[Include], *, has_more: bool) -> ItemList:
    """Return a page of items in the form that clients receive."""
    shown = [show_item(body, include) for body in bodies]
    return ItemList(
        data=shown,
        first_id=str(shown[0]["id"]) if shown else "",
        last_id=str(shown[-1]["id"]) if shown else "",
        has_more=has_more,
    )


def show_item(body: ItemBody, include: Sequence[Include]) -> ItemBody:
    """Return an item for a client; the results of a search are contained only where `include` names them."""
    return body if FILE_SEARCH_RESULTS in include else without_results(body)
