"""How turns end, what they cost, and what is left of a turn that nobody wanted stored."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.knowledge_bases import messages_of, new_base, searches, usage
from tests.e2e.client.wire import Wire
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Fault, Reply


async def test_reasoning_comes_before_the_answer(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(reasoning=("Let me", " think."), text=("Yes.",)))
    stream = await ann.responses.create(input="Well?", stream=True, reasoning={"effort": "high"})
    events = [event async for event in stream]
    thought = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    assert thought == "Let me think."
    reasoning, message = wire.newest.events[-1]["response"]["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "Let me think."}]
    assert (reasoning["type"], reasoning["summary"], reasoning["status"]) == ("reasoning", [], "completed")
    assert message["content"][0]["text"] == "Yes."
    finished = [event["item"]["type"] for event in wire.newest.events if event["type"] == "response.output_item.done"]
    assert finished == ["reasoning", "message"]


async def test_thoughts_are_not_sent_back(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(Reply(reasoning=("Hush.",), text=("Yes.",)), Reply(text=("No.",)))
    first = await ann.responses.create(input="a")
    await ann.responses.create(input="b", previous_response_id=first.id)
    assert b"Hush." not in (await model.requests())[1].body


@pytest.mark.parametrize("effort", ["minimal", "max"])
async def test_every_effort_is_told_back(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, effort: Any) -> None:
    await ann.responses.create(input="a", reasoning={"effort": effort, "summary": "auto"})
    assert wire.newest.json["reasoning"] == {"effort": effort, "summary": "auto"}
    assert (await model.requests())[0].json_body["reasoning_effort"] == effort


async def test_a_refusal_is_a_part_of_its_own(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(refusal=("I would", " rather not.")), Reply(text=("Fine.",)))
    stream = await ann.responses.create(input="Well?", stream=True)
    events = [event async for event in stream]
    said = "".join(event.delta for event in events if event.type == "response.refusal.delta")
    assert said == "I would rather not."
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == ""
    [message] = wire.newest.events[-1]["response"]["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "I would rather not."}]
    await ann.responses.create(input="And?", previous_response_id=last.response.id)
    assert messages_of((await model.requests())[1])[2]["content"] == "I would rather not."


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
async def test_an_answer_that_was_cut(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, finish: str, reason: str
) -> None:
    cut = Reply(text=("Half an", " ans"), finish_reason=finish)
    await model.script(cut, cut, Reply(text=("wer",)))
    response = await ann.responses.create(input="a", max_output_tokens=4)
    assert (response.status, response.output_text) == ("incomplete", "Half an ans")
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == reason
    assert wire.newest.json["output"][0]["status"] == "incomplete"
    stream = await ann.responses.create(input="a", stream=True)
    assert [event.type async for event in stream][-1] == "response.incomplete"
    assert wire.newest.events[-1]["response"]["incomplete_details"] == {"reason": reason}
    after = await ann.responses.create(input="Go on.", previous_response_id=response.id)
    assert after.status == "completed"


async def test_an_answer_cut_before_its_first_word(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(reasoning=("Long",), finish_reason="length"))
    response = await ann.responses.create(input="a")
    assert (response.status, response.output_text) == ("incomplete", "")
    assert [item["type"] for item in wire.newest.json["output"]] == ["reasoning"]


async def test_usage_tells_cached_tokens(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("A",), usage=usage(100, 64, 7, 3)))
    await ann.responses.create(input="a")
    assert wire.newest.json["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 107,
    }


async def test_usage_is_that_of_all_model_calls(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, pair: Pair
) -> None:
    base = new_base(pair, "counts", {"x.md": "Some text."})
    search = searches("text").model_copy(update={"usage": usage(100, 0, 10, 0)})
    await model.script(search, Reply(text=("A [1]",), usage=usage(150, 96, 5, 2)))
    await ann.responses.create(input="a", tools=[base.tool])
    told = wire.newest.json["usage"]
    assert (told["input_tokens"], told["output_tokens"], told["total_tokens"]) == (250, 15, 265)
    assert told["input_tokens_details"]["cached_tokens"] == 96
    assert told["output_tokens_details"]["reasoning_tokens"] == 2


async def test_a_failed_turn_is_an_error_with_a_stored_response(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("Half", " an"), fault=Fault.CUT))
    begun = await ann.conversations.create()
    with pytest.raises(openai.APIStatusError) as caught:
        await ann.responses.create(input="a", conversation=begun.id)
    assert caught.value.status_code >= 500
    assert wire.newest.headers["x-should-retry"] == "false"
    await ann.conversations.items.list(begun.id, order="asc")
    assert [item["status"] for item in wire.newest.json["data"]] == ["completed", "incomplete"]
    assert wire.newest.texts == ["a", "Half an"]
    after = await ann.responses.create(input="b", conversation=begun.id)
    assert after.status == "completed"


async def test_a_failed_stream_tells_the_error_twice(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Half", " an"), fault=Fault.CUT))
    stream = await ann.responses.create(input="a", stream=True)
    with pytest.raises(openai.APIError):
        assert [event async for event in stream]
    response_id = wire.newest.events[0]["response"]["id"]
    await ann.responses.retrieve(response_id)
    stored = wire.newest.json
    assert (stored["status"], stored["error"]["code"]) == ("failed", "server_error")
    async with ann.responses.with_streaming_response.retrieve(response_id, stream=True) as raw:
        assert [piece async for piece in raw.iter_bytes()]
    *_, error, last = wire.newest.events
    assert (error["type"], last["type"]) == ("error", "response.failed")
    assert {key: error["error"][key] for key in ("code", "message", "param")} == {
        key: error[key] for key in ("code", "message", "param")
    }
    assert last["response"] == stored


async def test_nothing_is_left_of_a_turn_that_is_not_stored(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("A",)), Reply(text=("B",)))
    plain = await ann.responses.create(input="a", store=False)
    assert (plain.output_text, plain.conversation) == ("A", None)
    assert wire.newest.json["store"] is False
    stream = await ann.responses.create(input="b", store=False, stream=True)
    events = [event async for event in stream]
    last = events[-1]
    assert last.type == "response.completed"
    for response_id in (plain.id, last.response.id):
        for ask in (
            ann.responses.retrieve(response_id),
            ann.responses.retrieve(response_id, stream=True),
            ann.responses.cancel(response_id),
            ann.responses.delete(response_id),
            ann.responses.create(input="c", previous_response_id=response_id),
        ):
            with pytest.raises(openai.NotFoundError):
                await ask
        with pytest.raises(openai.NotFoundError):
            await ann.responses.input_items.list(response_id)


async def test_a_turn_that_is_not_stored_may_begin_behind_a_stored_one(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    first = await ann.responses.create(input="a")
    aside = await ann.responses.create(input="b", previous_response_id=first.id, store=False)
    assert aside.conversation is None
    assert first.conversation is not None
    await ann.conversations.items.list(first.conversation.id, order="asc")
    assert wire.newest.texts == ["a", "ok"]
    await ann.responses.create(input="c", previous_response_id=first.id)
    one, two, three = map(messages_of, await model.requests())
    assert two[: len(one)] == one
    assert len(three) == len(two)


async def test_what_cannot_be_left_unstored(ann: AsyncOpenAI) -> None:
    begun = await ann.conversations.create()
    for ask in (
        ann.responses.create(input="a", store=False, background=True),
        ann.responses.create(input="a", store=False, conversation=begun.id),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            await ask
        assert caught.value.param == "store"
