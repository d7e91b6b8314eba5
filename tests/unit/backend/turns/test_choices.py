"""Several choices of one chat completion: lanes of one model, in the words of Chat Completions."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIError, BadRequestError, NotFoundError, RateLimitError

from backend.openai_api.domain.response_object import Ending
from backend.turns.domain.lanes import lanes_in
from backend.turns.http.event_stream import DONE
from shared.models.events import ExecutionEvent
from shared.models.messages import AssistantMessage
from shared.prompts.message_order import messages_of_request
from tests.examples import examples
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_types import check_chunk, check_completion
from tests.fakes.served_turns import CHAT, FAILS, HI, WEATHER, ServedApi, reached, serve_api
from tests.unit.backend.openai_api.projecting import chunks_of, joined, whole
from tests.unit.backend.turns.joining import lanes_of, scripts, streamed


async def choices_of(api: ServedApi, **fields: Any) -> list[dict[str, Any]]:
    """Ask for a completion, or a stream of one, and return its choices put together, in the order of their indexes."""
    answered = await api.http.post(CHAT, json={"messages": HI, **fields})
    if not fields.get("stream"):
        check_completion(answered.json())
        return answered.json()["choices"]
    chunks = [check_chunk(frame) for frame in answered.content.removesuffix(DONE).split(b"data: ") if frame]
    made = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    indexes = sorted({choice["index"] for choice in made})
    return [
        {
            "index": index,
            "message": joined([{"choices": [choice]} for choice in made if choice["index"] == index]),
            "finish_reason": [one["finish_reason"] for one in made if one["index"] == index and one["finish_reason"]],
        }
        for index in indexes
    ]


async def test_each_choice_is_a_call_over_the_same_prompt() -> None:
    async with serve_api(answer("One."), answer("Two."), answer("Three.")) as api:
        choices = await choices_of(api, model="demo-model", n=3)
        assert [(one["index"], one["finish_reason"]) for one in choices] == [(0, "stop"), (1, "stop"), (2, "stop")]
        assert [one["message"]["content"] for one in choices] == ["One.", "Two.", "Three."]
        sent = api.turns.sent
        assert [(one.model, one.cache_key) for one in sent] == [("demo-model", sent[0].cache_key)] * 3
        assert [messages_of_request(one) for one in sent] == [messages_of_request(sent[0])] * 3
        assert len({one.turn_id for one in sent}) == 3


async def test_choices_of_a_stream_end_each_by_itself() -> None:
    async with serve_api(answer("On", "e."), function_calls("c1", text="Look.")) as api:
        one, two = await choices_of(
            api, n=2, stream=True, stream_options={"include_usage": True}, tools=[WEATHER], store=False
        )
        assert (one["message"]["content"], one["finish_reason"]) == ("One.", ["stop"])
        assert (two["message"]["content"], two["finish_reason"]) == ("Look.", ["tool_calls"])
        assert [call["id"] for call in two["message"]["tool_calls"]] == ["c1"]
        assert not api.turns.state.responses


@pytest.mark.parametrize("stream", [False, True])
async def test_the_usage_is_the_sum(stream: bool) -> None:
    async with serve_api() as api:
        options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        text = (await api.http.post(CHAT, json={"messages": HI, "n": 2, **options})).content
        told = orjson.loads(text.removesuffix(b"\n\n" + DONE).rpartition(b"data: ")[2])
        assert told["usage"]["total_tokens"] == 2 * 18
        assert (told["choices"] == []) is stream


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_who_goes_on_with_a_choice_goes_on_in_its_conversation(place: int) -> None:
    async with serve_api(answer("One."), answer("Two."), answer("Three.")) as api:
        first = await api.openai.chat.completions.create(model="demo-model", messages=HI, n=3)
        said = first.choices[place].message
        lane = lanes_in(api.turns.state.responses[first.id].body)[place]
        resent: Any = [*HI, said.model_dump(), {"role": "user", "content": "More"}]
        await api.openai.chat.completions.create(model="demo-model", messages=resent)
        sent = api.turns.sent[-1]
        assert sent.conversation_id == lane.conversation_id
        before = messages_of_request(api.turns.sent[place])
        assert messages_of_request(sent)[: len(before) + 1] == (*before, AssistantMessage(text=said.content or ""))
        assert api.turns.observer.drifts == []


async def test_choices_behind_a_choice_begin_with_its_bytes() -> None:
    async with serve_api(answer("One."), answer("Two."), answer("A"), answer("B")) as api:
        await choices_of(api, n=2)
        resent = [*HI, {"role": "assistant", "content": "Two."}, {"role": "user", "content": "More"}]
        await choices_of(api, n=2, messages=resent)
        _, second, third, fourth = api.turns.sent
        before = messages_of_request(second)
        assert third.conversation_id == second.conversation_id != fourth.conversation_id
        assert messages_of_request(third) == messages_of_request(fourth)
        assert messages_of_request(third)[: len(before)] == before
        assert {one.cache_key for one in api.turns.sent} == {second.cache_key}


async def test_calls_of_one_choice_are_answered_in_its_lane() -> None:
    async with serve_api(function_calls("c"), function_calls("c", text="Look."), answer("Rain.")) as api:
        first = await api.openai.chat.completions.create(model="demo-model", messages=HI, tools=[WEATHER], n=2)
        lane = lanes_in(api.turns.state.responses[first.id].body)[1]
        result = {"role": "tool", "tool_call_id": "c", "content": "wet"}
        resent: Any = [*HI, first.choices[1].message.model_dump(), result]
        second = await api.openai.chat.completions.create(model="demo-model", messages=resent, tools=[WEATHER])
        assert second.choices[0].message.content == "Rain."
        assert api.turns.sent[-1].conversation_id == lane.conversation_id


@pytest.mark.parametrize("broken", [0, 1])
async def test_with_one_choice_the_whole_completion_fails(broken: int) -> None:
    scripts: list[Sequence[ExecutionEvent]] = [answer("Fine."), answer("Fine.")]
    scripts[broken] = FAILS
    async with serve_api(*scripts, *scripts) as api:
        with pytest.raises(RateLimitError, match="Slow down") as caught:
            await api.openai.chat.completions.create(model="demo-model", messages=HI, n=2)
        assert caught.value.response.headers["x-should-retry"] == "false"
        said: dict[int, str] = {}
        with pytest.raises(APIError, match="Slow down"):
            async for chunk in await api.openai.chat.completions.create(
                model="demo-model", messages=HI, n=2, stream=True
            ):
                for choice in chunk.choices:
                    said[choice.index] = said.get(choice.index, "") + (choice.delta.content or "")
                    assert choice.finish_reason is None
        assert said == {broken: "Half", 1 - broken: "Fine."}


async def test_a_request_that_is_sent_again_gets_the_same_choices() -> None:
    async with serve_api(answer("One."), answer("Two.")) as api:
        headers, asked = {"idempotency-key": "k"}, {"messages": HI, "n": 2}
        first = await api.http.post(CHAT, json=asked, headers=headers)
        again = await api.http.post(CHAT, json=asked, headers=headers)
        assert again.json() == first.json()
        streamed = await api.http.post(CHAT, json={**asked, "stream": True}, headers=headers)
        assert streamed.content.count(b'"finish_reason":"stop"') == 2
        assert len(api.turns.sent) == 2


async def test_too_many_choices_and_a_model_that_is_not_there_are_named() -> None:
    async with serve_api() as api:
        with pytest.raises(BadRequestError, match="n: must be at most 8") as caught:
            await api.openai.chat.completions.create(model="demo-model", messages=HI, n=9)
        assert caught.value.param == "n"
        with pytest.raises(NotFoundError) as missing:
            await api.openai.chat.completions.create(model="none", messages=HI, n=2)
        assert missing.value.param == "model"
        assert not api.turns.sent


async def test_choices_of_one_request_count_each() -> None:
    gates = [asyncio.Event() for _ in range(8)]
    async with serve_api(*[[gate, *answer("Done.")] for gate in gates]) as api:
        asking = asyncio.create_task(choices_of(api, n=8))
        await reached(api, 8)
        assert api.turns.registry.running_count == 9
        for gate in reversed(gates):
            gate.set()
        assert [choice["message"]["content"] for choice in await asking] == ["Done."] * 8


@examples(60)
@given(scripts, st.data())
def test_choices_say_the_same_in_chunks_and_as_a_whole(
    played: list[tuple[Sequence[ExecutionEvent], Ending]], data: st.DataObject
) -> None:
    lanes = lanes_of(played)
    made, events = streamed(lanes, data)
    body, last = made.finish(made.build_ending(is_cancelled=False), 1_700_000_009)
    chunks, projection = chunks_of([*events, *last])
    told = [choice for chunk in chunks for choice in chunk["choices"]]
    failed = any(lane.body["status"] == "failed" for lane in lanes)
    assert (projection.failure is not None) is failed
    assert all(choice["finish_reason"] is None for choice in told) or not failed
    for index, choice in enumerate([] if failed else whole(body)["choices"]):
        own = [one for one in told if one["index"] == index]
        said, message = joined([{"choices": [one]} for one in own]), choice["message"]
        assert (said["content"], said["refusal"]) == (message["content"] or "", message["refusal"] or "")
        assert [call["id"] for call in said["tool_calls"]] == [call["id"] for call in message.get("tool_calls", [])]
        assert [one["finish_reason"] for one in own][-1] == choice["finish_reason"]
