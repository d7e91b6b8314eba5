"""The official client, unmodified: conversations, their items, models; each body strictly of its types."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import orjson
import pytest
from openai import AsyncOpenAI
from openai.types import Model
from openai.types.conversations import Conversation, ConversationDeletedResource, Message
from pydantic import BaseModel

from tests.fakes.http_api import BASE_URL, FakeHouse
from tests.fakes.openai_types import check_item

PIXEL = "data:image/png;base64,iVBORw0KGgo="


class Recorder:
    """The bodies as they came over the wire: the client builds its answers without validation."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    async def note(self, response: httpx2.Response) -> None:
        self.bodies.append(orjson.loads(await response.aread()))

    def newest(self, model: type[BaseModel]) -> None:
        model.model_validate(self.bodies[-1], strict=True, extra="forbid")

    def newest_page(self) -> list[str]:
        """Check a page of items; return its ids."""
        page = dict(self.bodies[-1])
        items: list[dict[str, Any]] = page.pop("data")
        for item in items:
            check_item(item)
        assert set(page) == {"object", "first_id", "last_id", "has_more"}
        assert (page["object"], type(page["has_more"])) == ("list", bool)
        ids = [str(item["id"]) for item in items]
        assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else ("", ""))
        return ids


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture
async def client(house: FakeHouse, recorder: Recorder) -> AsyncIterator[AsyncOpenAI]:
    inside = httpx2.AsyncClient(transport=httpx2.ASGITransport(house.app()), event_hooks={"response": [recorder.note]})
    async with AsyncOpenAI(base_url=f"{BASE_URL}/v1", api_key=await house.key(), http_client=inside) as opened:
        yield opened


async def test_a_conversation_from_beginning_to_end(client: AsyncOpenAI, recorder: Recorder) -> None:
    begun = await client.conversations.create(metadata={"topic": "tea"})
    recorder.newest(Conversation)
    assert (await client.conversations.retrieve(begun.id)).metadata == {"topic": "tea"}
    recorder.newest(Conversation)
    assert (await client.conversations.update(begun.id, metadata={"topic": "coffee"})).metadata == {"topic": "coffee"}
    recorder.newest(Conversation)
    gone = await client.conversations.delete(begun.id)
    recorder.newest(ConversationDeletedResource)
    assert (gone.id, gone.deleted) == (begun.id, True)
    with pytest.raises(openai.NotFoundError) as caught:
        await client.conversations.retrieve(begun.id)
    assert (caught.value.code, caught.value.type) == ("not_found", "not_found_error")
    assert caught.value.request_id is not None


async def test_every_kind_of_item_comes_back_in_the_official_shape(client: AsyncOpenAI, recorder: Recorder) -> None:
    begun = await client.conversations.create()
    created = await client.conversations.items.create(
        begun.id,
        items=[
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
        ],
    )
    ids = recorder.newest_page()
    assert [item.type for item in created.data] == ["message"] * 3 + ["function_call", "function_call_output"]
    for item_id in ids:
        await client.conversations.items.retrieve(item_id, conversation_id=begun.id)
        check_item(recorder.bodies[-1])
        assert recorder.bodies[-1]["id"] == item_id


async def test_the_client_pages_through_all_items(client: AsyncOpenAI, recorder: Recorder) -> None:
    begun = await client.conversations.create(items=[{"role": "user", "content": f"m{n}"} for n in range(7)])
    newest_first = [
        item async for item in client.conversations.items.list(begun.id, limit=3, include=["file_search_call.results"])
    ]
    oldest_first = [item async for item in client.conversations.items.list(begun.id, limit=3, order="asc")]
    recorder.newest_page()
    assert [item.id for item in newest_first] == [item.id for item in reversed(oldest_first)]
    assert [_text(item) for item in oldest_first] == [f"m{n}" for n in range(7)]


async def test_an_empty_page_ends_the_paging(client: AsyncOpenAI, recorder: Recorder) -> None:
    begun = await client.conversations.create(metadata=None, items=None)
    assert [item async for item in client.conversations.items.list(begun.id)] == []
    assert recorder.newest_page() == []


async def test_an_older_item_stays_and_the_client_learns_why(client: AsyncOpenAI) -> None:
    begun = await client.conversations.create(items=[{"role": "user", "content": text} for text in ("kept", "newest")])
    page = await client.conversations.items.list(begun.id, order="asc")
    with pytest.raises(openai.APIStatusError) as caught:
        await client.conversations.items.delete(page.data[0].id or "", conversation_id=begun.id)
    assert (caught.value.status_code, caught.value.code) == (405, "method_not_allowed")


class Session:
    """Makes the calls of `OpenAIConversationsSession` of the OpenAI Agents SDK, in its order."""

    def __init__(self, client: AsyncOpenAI, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        self._id: str | None = None

    async def id(self) -> str:
        if self._id is None:
            self._id = (await self._client.conversations.create(items=[])).id
        return self._id

    async def get_items(self, limit: int | None = None) -> list[dict[str, Any]]:
        given: dict[str, Any] = {"order": "asc"} if limit is None else {"limit": limit, "order": "desc"}
        found: list[dict[str, Any]] = []
        async for item in self._client.conversations.items.list(conversation_id=await self.id(), **given):
            found.append(item.model_dump(exclude_unset=True))
            if limit is not None and len(found) >= limit:
                break
        return found if limit is None else found[::-1]

    async def add_items(self, items: list[Any]) -> None:
        for start in range(0, len(items), 20):
            await self._client.conversations.items.create(
                conversation_id=await self.id(), items=items[start : start + 20]
            )

    async def pop_item(self) -> dict[str, Any] | None:
        found = await self.get_items(limit=1)
        if not found:
            return None
        await self._client.conversations.items.delete(conversation_id=await self.id(), item_id=str(found[0]["id"]))
        self._recorder.newest(Conversation)
        return found[0]

    async def clear_session(self) -> None:
        await self._client.conversations.delete(conversation_id=await self.id())
        self._id = None


async def test_a_session_of_the_agents_sdk_pops_and_goes_on(client: AsyncOpenAI, recorder: Recorder) -> None:
    session = Session(client, recorder)
    await session.add_items([{"role": "user", "content": f"m{n}"} for n in range(23)])
    assert [item["content"][0]["text"] for item in await session.get_items(limit=2)] == ["m21", "m22"]
    await session.add_items(
        [
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
            {"role": "assistant", "content": "Hm."},
        ]
    )
    popped = [await session.pop_item() for _ in range(5)]
    assert [item["type"] for item in popped if item] == ["message", "function_call_output", "function_call"] + [
        "message"
    ] * 2
    await session.add_items([{"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Yes."}])
    kept = await session.get_items()
    assert [item["content"][0]["text"] for item in kept] == [*(f"m{n}" for n in range(21)), "And now?", "Yes."]
    for place in range(23):
        taken = await session.pop_item()
        assert taken is not None
        assert taken["id"] == kept[22 - place]["id"]
    assert await session.pop_item() is None
    old = await session.id()
    await session.clear_session()
    assert await session.id() != old
    assert await session.get_items() == []


async def test_a_wrong_item_reaches_the_client_with_its_name(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.conversations.create(items=[{"role": "user", "content": 5}])  # pyright: ignore[reportArgumentType]
    assert caught.value.param == "items[0].content"


async def test_models(client: AsyncOpenAI, recorder: Recorder) -> None:
    assert [model.id async for model in client.models.list()] == ["demo-model", "vendor/large"]
    assert (await client.models.retrieve("vendor/large")).id == "vendor/large"
    recorder.newest(Model)
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("nope")


async def test_a_wrong_key_is_an_authentication_error(house: FakeHouse) -> None:
    inside = httpx2.AsyncClient(transport=httpx2.ASGITransport(house.app()))
    async with AsyncOpenAI(base_url=f"{BASE_URL}/v1", api_key="sk-wrong", http_client=inside) as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.conversations.create()
    assert caught.value.code == "invalid_api_key"


async def test_a_running_turn_is_a_conflict_that_is_not_repeated(
    client: AsyncOpenAI, house: FakeHouse, recorder: Recorder
) -> None:
    begun = await client.conversations.create()
    held = house.state.conversations[begun.id].model_copy(update={"running_response_id": "resp_1"})
    house.state.conversations[begun.id] = held
    before = len(recorder.bodies)
    with pytest.raises(openai.ConflictError) as caught:
        await client.conversations.items.create(begun.id, items=[{"role": "user", "content": "x"}])
    assert caught.value.code == "conversation_locked"
    assert len(recorder.bodies) == before + 1


def _text(item: object) -> str:
    assert isinstance(item, Message)
    part = item.content[0]
    assert part.type == "input_text"
    return part.text
