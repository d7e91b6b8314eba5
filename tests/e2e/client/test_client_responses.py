"""Responses by the official client: plain, streamed, in the background, read again, deleted."""

import openai
import orjson
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, Reply

HELLO = Reply(text=("Hel", "lo", " there"))


async def test_a_plain_answer(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO)
    response = await ann.responses.create(model="fake-model", input="Hi")
    assert response.output_text == "Hello there"
    assert response.status == "completed"
    assert response.id.startswith("resp_")
    assert response.conversation is not None
    assert response.conversation.id.startswith("conv_")
    assert response.model == "fake-model"
    assert response.usage is not None
    assert response.usage.output_tokens == 3
    assert response.usage.total_tokens == response.usage.input_tokens + 3
    [message] = wire.newest.json["output"]
    assert message["id"].startswith("msg_")
    assert message["status"] == "completed"


async def test_without_a_model_the_default_answers(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    response = await ann.responses.create(input="Hi")
    assert response.model == "fake-model"
    assert (await model.requests())[0].json_body["model"] == "fake-model"


async def test_a_stream(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO)
    types = [event.type async for event in await ann.responses.create(input="Hi", stream=True)]
    deltas = types.count("response.output_text.delta")
    assert 1 <= deltas <= 3
    assert types == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert wire.newest.is_whole
    assert wire.newest.headers["cache-control"] == "no-store"


async def test_a_background_turn_is_polled(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO.model_copy(update={"hold_after": 2}))
    begun = await ann.responses.create(input="Hi", background=True)
    assert (begun.status, begun.background, begun.output) == ("in_progress", True, [])
    await model.wait_held()
    assert (await ann.responses.retrieve(begun.id)).status == "in_progress"
    await model.release()
    while (await ann.responses.retrieve(begun.id)).status == "in_progress":
        continue
    assert wire.newest.json["status"] == "completed"
    assert wire.newest.json["output"][0]["content"][0]["text"] == "Hello there"


async def test_a_background_turn_streams_too(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(HELLO)
    events = [event async for event in await ann.responses.create(input="Hi", background=True, stream=True)]
    last = events[-1]
    assert last.type == "response.completed"
    assert (last.response.background, last.response.output_text) == (True, "Hello there")


async def test_a_response_is_retrieved_as_it_was_answered(ann: AsyncOpenAI, wire: Wire) -> None:
    created = await ann.responses.create(input="Hi")
    answered = wire.newest.json
    assert (await ann.responses.retrieve(created.id)).output_text == "ok"
    assert wire.newest.json == answered
    await ann.responses.retrieve(created.id, include=["file_search_call.results"])
    assert wire.newest.json == answered


async def test_a_replay_repeats_the_stream_byte_by_byte(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO)
    events = [event async for event in await ann.responses.create(input="Hi", stream=True)]
    live = bytes(wire.newest.body)
    created = events[0]
    assert created.type == "response.created"
    replayed = [event async for event in await ann.responses.retrieve(created.response.id, stream=True)]
    assert bytes(wire.newest.body) == live
    assert len(replayed) == len(events)
    frames = live.split(b"\n\n")
    for after in (0, 5, len(events) - 2):
        stream = await ann.responses.retrieve(created.response.id, stream=True, starting_after=after)
        numbers = [event.sequence_number async for event in stream]
        assert numbers == list(range(after + 1, len(events)))
        assert bytes(wire.newest.body).split(b"\n\n") == frames[after + 1 :]


async def test_a_replay_behind_the_last_event_ends_at_once(ann: AsyncOpenAI, wire: Wire) -> None:
    events = [event async for event in await ann.responses.create(input="Hi", stream=True)]
    last = events[-1]
    assert last.type == "response.completed"
    stream = await ann.responses.retrieve(last.response.id, stream=True, starting_after=last.sequence_number)
    assert [event async for event in stream] == []
    assert bytes(wire.newest.body) == b"data: [DONE]\n\n"


async def test_a_running_turn_is_followed_from_any_point(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO.model_copy(update={"hold_after": 2}))
    begun = await ann.responses.create(input="Hi", background=True)
    stream = await ann.responses.retrieve(begun.id, stream=True)
    heard = ""
    async for event in stream:
        if event.type == "response.output_text.delta":
            heard += event.delta
            if heard == "Hello":
                late = await ann.responses.retrieve(begun.id, stream=True, starting_after=event.sequence_number)
                await model.release()
                assert [one.delta async for one in late if one.type == "response.output_text.delta"] == [" there"]
    assert heard == "Hello there"
    assert wire.newest.is_whole


async def test_a_client_that_leaves_does_not_stop_the_turn(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(HELLO.model_copy(update={"hold_after": 1}))
    stream = await ann.responses.create(input="Hi", stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    assert not wire.newest.is_whole
    response_id = wire.newest.events[0]["response"]["id"]
    await model.release()
    events = [event async for event in await ann.responses.retrieve(response_id, stream=True)]
    assert events[-1].type == "response.completed"


async def test_a_deleted_response_is_gone_and_its_conversation_stays(ann: AsyncOpenAI) -> None:
    created = await ann.responses.create(input="Hi")
    await ann.responses.delete(created.id)
    assert created.conversation is not None
    for ask in (
        ann.responses.retrieve(created.id),
        ann.responses.retrieve(created.id, stream=True),
        ann.responses.cancel(created.id),
        ann.responses.delete(created.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await ask
    with pytest.raises(openai.NotFoundError):
        await ann.responses.input_items.list(created.id)
    with pytest.raises(openai.NotFoundError) as caught:
        await ann.responses.create(input="Hi", previous_response_id=created.id)
    assert caught.value.param == "previous_response_id"
    items = [item async for item in ann.conversations.items.list(created.conversation.id)]
    assert len(items) == 2


async def test_input_items_come_in_pages(ann: AsyncOpenAI, wire: Wire) -> None:
    texts = [f"m{number}" for number in range(5)]
    created = await ann.responses.create(input=[{"role": "user", "content": text} for text in texts])
    before = len(wire.exchanges)
    assert len([item async for item in ann.responses.input_items.list(created.id, order="asc", limit=2)]) == 5
    assert [exchange.texts for exchange in wire.exchanges[before:]] == [texts[:2], texts[2:4], texts[4:]]
    assert len([item async for item in ann.responses.input_items.list(created.id, order="desc", limit=3)]) == 5
    assert wire.newest.texts == [texts[1], texts[0]]
    default = await ann.responses.input_items.list(created.id)
    assert wire.newest.texts == texts[::-1]
    assert default.has_more is False
    behind = await ann.responses.input_items.list(created.id, after=default.data[-1].id or "")
    assert behind.data == []


async def test_somebody_elses_response_is_not_there(ann: AsyncOpenAI, bob: AsyncOpenAI) -> None:
    created = await ann.responses.create(input="Hi")
    for ask in (
        bob.responses.retrieve(created.id),
        bob.responses.retrieve(created.id, stream=True),
        bob.responses.cancel(created.id),
        bob.responses.delete(created.id),
        bob.responses.create(input="Hi", previous_response_id=created.id),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            await ask
        assert caught.value.code == "not_found"
    with pytest.raises(openai.NotFoundError):
        await bob.responses.input_items.list(created.id)
    assert (await ann.responses.retrieve(created.id)).status == "completed"


async def test_metadata_is_the_callers_and_comes_back_untouched(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    given = {f"key {number}": "v" * 512 for number in range(15)} | {"k" * 64: ""}
    created = await ann.responses.create(input="Hi", metadata=given)
    assert created.metadata == given
    assert (await ann.responses.retrieve(created.id)).metadata == given
    assert b"vvvv" not in (await model.requests())[0].body


@pytest.mark.parametrize(
    "metadata", [{f"k{number}": "v" for number in range(17)}, {"k" * 65: "v"}, {"k": "v" * 513}], ids=len
)
async def test_metadata_beyond_its_limits_is_refused(ann: AsyncOpenAI, metadata: dict[str, str]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.responses.create(input="Hi", metadata=metadata)
    assert (caught.value.param or "").startswith("metadata")


async def test_parameters_reach_the_model_and_are_told_back(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await ann.responses.create(
        input="Hi",
        temperature=0.25,
        top_p=0.5,
        max_output_tokens=77,
        reasoning={"effort": "low"},
        parallel_tool_calls=False,
        truncation="disabled",
        service_tier="auto",
        safety_identifier="someone",
        prompt_cache_key="mine",
        text={"verbosity": "low"},
        extra_body={"presence_penalty": 0.5, "frequency_penalty": -0.5},
    )
    echoed = wire.newest.json
    assert (echoed["temperature"], echoed["top_p"], echoed["max_output_tokens"]) == (0.25, 0.5, 77)
    assert (echoed["presence_penalty"], echoed["frequency_penalty"]) == (0.5, -0.5)
    assert echoed["reasoning"] == {"effort": "low", "summary": None}
    assert (echoed["parallel_tool_calls"], echoed["truncation"], echoed["service_tier"]) == (
        False,
        "disabled",
        "default",
    )
    assert (echoed["safety_identifier"], echoed["prompt_cache_key"]) == ("someone", "mine")
    sent = (await model.requests())[0].json_body
    assert (sent["temperature"], sent["top_p"]) == (0.25, 0.5)
    assert sent.get("max_completion_tokens", sent.get("max_tokens")) == 77
    assert (sent["presence_penalty"], sent["frequency_penalty"]) == (0.5, -0.5)
    assert (sent["reasoning_effort"], sent["verbosity"]) == ("low", "low")


async def test_models(ann: AsyncOpenAI) -> None:
    assert [model.id async for model in ann.models.list()] == ["fake-model"]
    assert (await ann.models.retrieve("fake-model")).object == "model"
    with pytest.raises(openai.NotFoundError):
        await ann.models.retrieve("nope")


async def test_mistakes_are_told_in_the_official_shape(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    with pytest.raises(openai.NotFoundError) as unknown_model:
        await ann.responses.create(model="nope", input="Hi")
    assert unknown_model.value.param == "model"
    with pytest.raises(openai.BadRequestError) as unsupported:
        await ann.responses.create(input="Hi", extra_body={"prompt": {"id": "bogus"}})
    assert unsupported.value.param == "prompt"
    with pytest.raises(openai.BadRequestError) as wrong_type:
        await ann.responses.create(input="Hi", temperature=3)
    assert wrong_type.value.param == "temperature"
    with pytest.raises(openai.BadRequestError) as nothing:
        await ann.responses.create(input=[])
    assert nothing.value.param == "input"
    async with ann.with_options(api_key="sk-wrong") as stranger:
        with pytest.raises(openai.AuthenticationError) as wrong_key:
            await stranger.responses.create(input="Hi")
    assert wrong_key.value.code == "invalid_api_key"
    assert await model.requests() == []


async def test_the_raw_answer_is_json_of_the_same_response(ann: AsyncOpenAI, wire: Wire) -> None:
    raw = await ann.responses.with_raw_response.create(input="Hi")
    assert raw.request_id == wire.newest.headers["x-request-id"]
    assert orjson.loads(raw.content) == wire.newest.json
    assert raw.parse().output_text == "ok"
