"""Conversations and their items, in OpenAI's shape."""

from functools import partial
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from backend.conversations.domain.input_items import InputItems
from backend.conversations.domain.item_bodies import RESPONSE_ID, Include
from backend.conversations.domain.item_pages import ItemList, ItemPageQuery, item_list, show_item
from backend.conversations.domain.item_steps import INPUT_ITEM, body_cooperatively
from backend.conversations.domain.responses import Conversation
from backend.conversations.services.conversations import CallerConversations, ItemQuery
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.domain.paging import PageQuery
from backend.foundation.http.inline_schema import describe_body
from backend.foundation.http.json_body import new_router, read_json
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, Metadata, RequestBody, unix_seconds
from backend.foundation.services.steps import run_cooperatively
from backend.identity.http.caller import CallerDep, OnceDep
from shared.models.values import JsonObject

ConversationsDep = Annotated[CallerConversations, Depends(service_of(CallerConversations))]
WithheldDep = Annotated[WithheldText, Depends(service_of(WithheldText))]
router = new_router("Conversations")


class CreateConversation(RequestBody):
    """What a conversation begins with."""

    items: InputItems | None = None
    metadata: Metadata | None = None


class UpdateConversation(RequestBody):
    """The pairs that replace all pairs so far."""

    metadata: Metadata | None


class CreateItems(RequestBody):
    """Items to append to the history."""

    items: Annotated[InputItems, Field(min_length=1)]


class ShownConversation(BaseModel):
    """A conversation."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str]


class ConversationList(ListPage[ShownConversation]):
    """A page of conversations; `first_id` and `last_id` are empty on an empty page."""


NOTHING_MORE: list[Include] = []
IncludeParam = Annotated[list[Include], Query(alias="include[]")]


@router.post(
    "/v1/conversations",
    status_code=201,
    summary="Create a conversation",
    openapi_extra=describe_body(CreateConversation, required=False),
)
async def create_conversation(
    request: Request, conversations: ConversationsDep, caller: CallerDep, once: OnceDep
) -> ShownConversation:
    """Begin a conversation, empty or with a history of the caller's own."""
    text = await read_json(request)
    steps = body_cooperatively(CreateConversation, text, "items", INPUT_ITEM)
    body = await run_cooperatively(steps) if text.raw else CreateConversation()
    create = partial(conversations.create, caller, body.items or (), body.metadata or {})
    return _show(await once(create, partial(conversations.find, caller)))


@router.get("/v1/conversations", summary="List conversations")
async def list_conversations(
    conversations: ConversationsDep, caller: CallerDep, page: Annotated[PageQuery, Query()]
) -> ConversationList:
    """Return a page of the conversations that the caller may read, the newest first unless asked otherwise."""
    found = await conversations.page(caller, page)
    shown = [_show(each) for each in found.conversations]
    return ConversationList.of(shown, [each.id for each in shown], has_more=found.has_more)


@router.get("/v1/conversations/{conversation_id}", summary="Retrieve a conversation")
async def retrieve_conversation(
    conversation_id: str, conversations: ConversationsDep, caller: CallerDep
) -> ShownConversation:
    """Return a conversation."""
    return _show(await conversations.find(caller, conversation_id))


@router.post("/v1/conversations/{conversation_id}", summary="Update a conversation")
async def update_conversation(
    conversation_id: str, body: UpdateConversation, conversations: ConversationsDep, caller: CallerDep
) -> ShownConversation:
    """Replace the metadata."""
    return _show(await conversations.set_metadata(caller, conversation_id, body.metadata or {}))


@router.delete("/v1/conversations/{conversation_id}", summary="Delete a conversation")
async def delete_conversation(conversation_id: str, conversations: ConversationsDep, caller: CallerDep) -> Deleted:
    """Delete a conversation with its items; 409 while a turn runs on it."""
    await conversations.delete(caller, conversation_id)
    return Deleted(id=conversation_id, object="conversation.deleted")


@router.get("/v1/conversations/{conversation_id}/items", summary="List items")
async def list_items(
    conversation_id: str,
    conversations: ConversationsDep,
    withheld: WithheldDep,
    caller: CallerDep,
    page: Annotated[ItemPageQuery, Query()],
) -> ItemList:
    """Return a page of items, the newest first unless asked otherwise."""
    query = ItemQuery(limit=page.limit, descending=page.descending, after=page.after)
    found = await conversations.items(caller, conversation_id, query)
    bodies = await withheld.show_items(caller, conversation_id, found.items)
    if RESPONSE_ID in page.include:
        bodies = [{**body, "response_id": item.response_id} for body, item in zip(bodies, found.items, strict=True)]
    return item_list(bodies, page.include, has_more=found.has_more)


@router.post(
    "/v1/conversations/{conversation_id}/items",
    status_code=201,
    summary="Create items",
    openapi_extra=describe_body(CreateItems),
)
async def create_items(
    conversation_id: str,
    request: Request,
    conversations: ConversationsDep,
    caller: CallerDep,
    once: OnceDep,
    include: IncludeParam = NOTHING_MORE,
) -> ItemList:
    """Append items to the history; 409 while a turn runs on the conversation."""
    body = await run_cooperatively(body_cooperatively(CreateItems, await read_json(request), "items", INPUT_ITEM))
    create = partial(conversations.add_items, caller, conversation_id, body.items)
    created = await once(create, partial(conversations.items_added, caller, conversation_id))
    return item_list([item.body for item in created], include, has_more=False)


@router.get("/v1/conversations/{conversation_id}/items/{item_id}", summary="Retrieve an item")
async def retrieve_item(
    conversation_id: str,
    item_id: str,
    conversations: ConversationsDep,
    withheld: WithheldDep,
    caller: CallerDep,
    include: IncludeParam = NOTHING_MORE,
) -> JsonObject:
    """Return one item."""
    found = await conversations.item(caller, conversation_id, item_id)
    (body,) = await withheld.show_items(caller, conversation_id, [found])
    return show_item(body, include)


@router.delete("/v1/conversations/{conversation_id}/items/{item_id}", summary="Delete the last item")
async def delete_item(
    conversation_id: str, item_id: str, conversations: ConversationsDep, caller: CallerDep
) -> ShownConversation:
    """Take the last item out and return the conversation; 405 for any other item, 409 while a turn runs."""
    return _show(await conversations.remove_item(caller, conversation_id, item_id))


def _show(conversation: Conversation) -> ShownConversation:
    return ShownConversation(
        id=conversation.id, created_at=unix_seconds(conversation.created_at), metadata=conversation.metadata
    )
