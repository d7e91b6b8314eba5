"""Conversations and their items by the official client."""

from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, Reply

PIXEL = "data:image/png;base64,iVBORw0KGgo="
KINDS: Any = [
    {"role": "user", "content": "plain"},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": PIXEL, "detail": "low"},
        ],
    },
    {"type": "message", "role": "assistant", "content": "answer"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
]


async def test_from_beginning_to_end(ann: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create(metadata={"topic": "tea"})
    assert wire.newest.status == 201
    assert begun.id.startswith("conv_")
    assert (await ann.conversations.retrieve(begun.id)).metadata == {"topic": "tea"}
    await ann.conversations.update(begun.id, metadata={"about": "coffee"})
    assert (await ann.conversations.retrieve(begun.id)).metadata == {"about": "coffee"}
    gone = await ann.conversations.delete(begun.id)
    assert (gone.id, gone.deleted) == (begun.id, True)
    for ask in (
        ann.conversations.retrieve(begun.id),
        ann.conversations.delete(begun.id),
        ann.conversations.update(begun.id, metadata={}),
        ann.responses.create(input="Hi", conversation=begun.id),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            await ask
        assert caught.value.code == "not_found"


async def test_nothing_given(ann: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create()
    assert begun.metadata == {}
    assert [item async for item in ann.conversations.items.list(begun.id)] == []
    assert wire.newest.json["last_id"] == ""


async def test_every_kind_of_item_is_created_and_retrieved(ann: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create()
    created = await ann.conversations.items.create(begun.id, items=KINDS)
    assert wire.newest.status == 201
    assert [item.type for item in created.data] == ["message"] * 3 + ["function_call", "function_call_output"]
    for item in wire.newest.json["data"]:
        await ann.conversations.items.retrieve(item["id"], conversation_id=begun.id, include=[])
        assert wire.newest.json == item
    with pytest.raises(openai.NotFoundError):
        await ann.conversations.items.retrieve("msg_nobody", conversation_id=begun.id)


async def test_items_given_at_the_beginning_are_history(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    begun = await ann.conversations.create(items=KINDS)
    await ann.responses.create(input="And?", conversation=begun.id)
    sent = (await model.requests())[0].json_body["messages"]
    assert [message["role"] for message in sent[1:]] == ["user", "user", "assistant", "tool", "user"]
    assert sent[1]["content"] == "plain"
    assert sent[2]["content"][1]["image_url"]["url"] == PIXEL
    assert sent[3]["tool_calls"][0]["id"] == "c1"
    assert (sent[4]["tool_call_id"], sent[4]["content"]) == ("c1", "sunny")
    await ann.conversations.items.list(begun.id, limit=100)
    assert len(wire.newest.json["data"]) == len(KINDS) + 2


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pages_of_items(ann: AsyncOpenAI, wire: Wire, limit: int) -> None:
    texts = [f"m{number}" for number in range(7)]
    begun = await ann.conversations.create(items=[{"role": "user", "content": text} for text in texts])
    orders: tuple[tuple[Literal["asc", "desc"], list[str]], ...] = (("asc", texts), ("desc", texts[::-1]))
    for order, wanted in orders:
        before = len(wire.exchanges)
        listed = ann.conversations.items.list(begun.id, limit=limit, order=order, include=["file_search_call.results"])
        ids = [item.id async for item in listed]
        pages = wire.exchanges[before:]
        assert [text for page in pages for text in page.texts] == wanted
        assert len(set(ids)) == len(texts)
        assert len(pages) == -(-len(texts) // limit)
        assert [page.json["has_more"] for page in pages] == [True] * (len(pages) - 1) + [False]


async def test_a_page_is_twenty_of_the_newest_where_nothing_is_said(ann: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create(items=[{"role": "user", "content": f"m{n}"} for n in range(20)])
    await ann.conversations.items.create(begun.id, items=[{"role": "user", "content": "m20"}])
    page = await ann.conversations.items.list(begun.id)
    assert wire.newest.texts == [f"m{n}" for n in range(20, 0, -1)]
    assert page.has_next_page()
    for limit in (0, 101):
        with pytest.raises(openai.BadRequestError) as caught:
            await ann.conversations.items.list(begun.id, limit=limit)
        assert caught.value.param == "limit"
    with pytest.raises(openai.NotFoundError):
        await ann.conversations.items.list(begun.id, after="msg_nobody")


async def test_an_older_item_is_not_deleted(ann: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create(items=[{"role": "user", "content": text} for text in ("kept", "newest")])
    await ann.conversations.items.list(begun.id)
    item_id = wire.newest.json["data"][1]["id"]
    with pytest.raises(openai.APIStatusError) as caught:
        await ann.conversations.items.delete(item_id, conversation_id=begun.id)
    assert (caught.value.status_code, caught.value.code) == (405, "method_not_allowed")
    await ann.conversations.items.retrieve(item_id, conversation_id=begun.id)


async def test_turns_of_one_conversation(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("one",)), Reply(text=("two",)))
    begun = await ann.conversations.create()
    first = await ann.responses.create(input="a", conversation=begun.id)
    message = wire.newest.json["output"][0]
    second = await ann.responses.create(input="b", conversation={"id": begun.id})
    assert first.conversation == second.conversation
    assert second.previous_response_id is None
    await ann.conversations.items.list(begun.id, order="asc")
    assert wire.newest.texts == ["a", "one", "b", "two"]
    assert wire.newest.json["data"][1] == message
    one, two = [request.json_body["messages"] for request in await model.requests()]
    assert two[: len(one)] == one
    assert [message["role"] for message in two] == ["system", "user", "assistant", "user"]


async def test_while_a_turn_runs_the_conversation_is_held(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("one",), hold_after=0))
    begun = await ann.conversations.create()
    running = await ann.responses.create(input="a", conversation=begun.id, background=True)
    await model.wait_held()
    for ask in (
        ann.responses.create(input="b", conversation=begun.id),
        ann.responses.create(input="b", previous_response_id=running.id),
        ann.conversations.items.create(begun.id, items=[{"role": "user", "content": "b"}]),
        ann.conversations.delete(begun.id),
    ):
        with pytest.raises(openai.ConflictError):
            await ask
        assert wire.newest.headers["x-should-retry"] == "false"
    await ann.conversations.update(begun.id, metadata={"still": "mine"})
    await model.release()
    async with ann.responses.stream(response_id=running.id) as stream:
        await stream.get_final_response()
    assert len(await model.requests()) == 1
    assert (await ann.responses.create(input="b", conversation=begun.id)).status == "completed"


async def test_with_its_own_retries_the_client_gives_up_at_once(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("one",), hold_after=0))
    running = await ann.responses.create(input="a", background=True)
    before = len(wire.exchanges)
    with pytest.raises(openai.ConflictError):
        await ann.with_options(max_retries=2).responses.create(input="b", previous_response_id=running.id)
    assert len(wire.exchanges) == before + 1
    await ann.responses.cancel(running.id)


async def test_somebody_elses_conversation_is_not_there(ann: AsyncOpenAI, bob: AsyncOpenAI, wire: Wire) -> None:
    begun = await ann.conversations.create(items=[{"role": "user", "content": "mine"}])
    await ann.conversations.items.list(begun.id)
    item_id = wire.newest.json["data"][0]["id"]
    for ask in (
        bob.conversations.retrieve(begun.id),
        bob.conversations.update(begun.id, metadata={"a": "b"}),
        bob.conversations.delete(begun.id),
        bob.conversations.items.create(begun.id, items=[{"role": "user", "content": "x"}]),
        bob.conversations.items.retrieve(item_id, conversation_id=begun.id),
        bob.responses.create(input="Hi", conversation=begun.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await ask
    with pytest.raises(openai.NotFoundError):
        await bob.conversations.items.list(begun.id)


async def test_a_wrong_item_is_named(ann: AsyncOpenAI) -> None:
    wrong: Any = [{"role": "user", "content": "x"}, {"role": "user", "content": 5}]
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.conversations.create(items=wrong)
    assert caught.value.param == "items[1].content"
