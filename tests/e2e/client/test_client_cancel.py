"""Cancelling by the official client."""

from collections.abc import AsyncIterator

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseStreamEvent

from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, Fault, Reply

HELD = Reply(text=("Hel", "lo", " there"), hold_after=2)


async def heard_until(events: AsyncIterator[ResponseStreamEvent], text: str) -> None:
    """Read deltas until they make up this text."""
    heard = ""
    while heard != text:
        event = await anext(events)
        if event.type == "response.output_text.delta":
            heard += event.delta


async def test_a_running_turn_keeps_what_was_said(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELD)
    stream = await ann.responses.create(input="Hi", stream=True)
    streamed = wire.newest
    events = aiter(stream)
    created = await anext(events)
    assert created.type == "response.created"
    await heard_until(events, "Hello")

    cancelled = await ann.responses.cancel(created.response.id)
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "Hello")
    body = wire.newest.json
    assert (body["incomplete_details"], body["error"], body["completed_at"]) == (None, None, None)
    assert [item["status"] for item in body["output"]] == ["incomplete"]
    await model.wait_closed()

    assert [event.type async for event in events][-1] == "response.incomplete"
    assert streamed.is_whole
    assert streamed.events[-1]["response"] == body
    await ann.responses.retrieve(created.response.id)
    assert wire.newest.json == body


async def test_again_and_after_the_end_nothing_changes(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELD, Reply(text=("Done",)))
    begun = await ann.responses.create(input="Hi", background=True)
    await model.wait_held()
    assert (await ann.responses.cancel(begun.id)).status == "cancelled"
    first = wire.newest.json
    assert (await ann.responses.cancel(begun.id)).status == "cancelled"
    assert wire.newest.json == first

    finished = await ann.responses.create(input="Hi")
    before = wire.newest.json
    assert (await ann.responses.cancel(finished.id)).status == "completed"
    assert wire.newest.json == before


async def test_before_the_first_word_nothing_is_kept(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Hello",), hold_after=0))
    begun = await ann.responses.create(input="Hi", background=True)
    await model.wait_held()
    assert (await ann.responses.cancel(begun.id)).status == "cancelled"
    assert wire.newest.json["output"] == []
    replayed = [event.type async for event in await ann.responses.retrieve(begun.id, stream=True)]
    assert replayed == ["response.created", "response.in_progress", "response.incomplete"]


async def test_deltas_without_a_pause_do_not_drown_it(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("on and ",), fault=Fault.ENDLESS))
    stream = await ann.responses.create(input="Hi", stream=True)
    streamed = wire.newest
    events = aiter(stream)
    created = await anext(events)
    assert created.type == "response.created"
    heard = ""
    while not heard.startswith("on and on and "):
        event = await anext(events)
        heard += event.delta if event.type == "response.output_text.delta" else ""
    cancelled = await ann.responses.cancel(created.response.id)
    assert cancelled.status == "cancelled"
    await model.wait_closed()
    assert [event.type async for event in events][-1] == "response.incomplete"
    assert streamed.events[-1]["response"]["output"][0]["content"][0]["text"] == cancelled.output_text
    assert cancelled.output_text.startswith("on and on and ")


async def test_the_conversation_goes_on_behind_it(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELD, Reply(text=("Again",)))
    begun = await ann.responses.create(input="Hi", background=True)
    async with ann.responses.stream(response_id=begun.id) as stream:
        async for event in stream:
            if event.type == "response.output_text.delta" and event.snapshot == "Hello":
                break
        await ann.responses.cancel(begun.id)
    after = await ann.responses.create(input="And now?", previous_response_id=begun.id)
    assert after.output_text == "Again"
    assert begun.conversation is not None
    assert after.conversation == begun.conversation
    await ann.conversations.items.list(begun.conversation.id, order="asc")
    assert wire.newest.texts == ["Hi", "Hello", "And now?", "Again"]
    sent = (await model.requests())[1].json_body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[2]["content"] == "Hello"


async def test_deleting_a_running_response_stops_it(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(HELD)
    begun = await ann.responses.create(input="Hi", background=True)
    await model.wait_held()
    await ann.responses.delete(begun.id)
    await model.wait_closed()
    with pytest.raises(openai.NotFoundError):
        await ann.responses.retrieve(begun.id)


async def test_a_response_that_is_not_there(ann: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await ann.responses.cancel("resp_nobody")
    assert caught.value.type == "not_found_error"
