"""Responses over HTTP, called by the official client and by hand."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any, cast

import orjson
import pytest
from openai import APIError, APIStatusError, NotFoundError

from backend.openai_api.domain.response_events import LoggedEvent
from backend.turns.http.event_stream import EventStream
from backend.turns.http.routes import ResponsesFormat
from shared.models.events import ModelCallStarted, TextDelta, TurnFailed
from tests.fakes.chat_shell_scripted import USAGE, answer, function_calls
from tests.fakes.openai_types import check_event, check_item, check_response
from tests.fakes.served_turns import REPORT, serve_api
from tests.patience import PATIENCE_SECONDS

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


async def test_a_plain_answer() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        raw = await api.openai.responses.with_raw_response.create(model="demo-model", input="Hi")
        body = orjson.loads(raw.content)
        check_response(body)
        assert raw.parse().output_text == "Hello."
        assert body["status"] == "completed"


async def test_the_official_client_counts_what_a_turn_would_send() -> None:
    async with serve_api(answer("Yes.")) as api:
        first = await api.openai.responses.create(model="demo-model", input="Hi " * 1000)
        counted = await api.openai.responses.input_tokens.count(input="Hi", previous_response_id=first.id)
        fresh = await api.openai.responses.input_tokens.count(model="demo-model", tools=[WEATHER])
        assert (counted.object, fresh.object) == ("response.input_tokens", "response.input_tokens")
        assert counted.input_tokens - fresh.input_tokens > 700
        assert len(api.turns.state.responses) == 1
        with pytest.raises(NotFoundError, match="previous_response_id: There is no response"):
            await api.openai.responses.input_tokens.count(input="Hi", previous_response_id="resp_1")
        refused = await api.http.post("/v1/responses/input_tokens", json={"input": "Hi", "temperature": 9})
        assert refused.json()["error"]["param"] == "temperature"


async def test_frames_follow_the_open_responses_rules() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        answered = await api.http.post("/v1/responses", json={"input": "Hi", "stream": True})
        assert answered.headers["content-type"].startswith("text/event-stream")
        frames = answered.content.removesuffix(b"\n\n").split(b"\n\n")
        assert frames[-1] == b"data: [DONE]"
        for number, frame in enumerate(frames[:-1]):
            name, body = frame.split(b"\n")
            event = check_event(body.removeprefix(b"data: "))
            assert name == f"event: {event['type']}".encode()
            assert event["sequence_number"] == number
        assert b"response.created" in frames[0]


async def test_the_stream_helper_gets_the_final_response() -> None:
    async with (
        serve_api(answer("Hel", "lo.")) as api,
        api.openai.responses.stream(model="demo-model", input="Hi") as events,
    ):
        said = [event.delta async for event in events if event.type == "response.output_text.delta"]
        assert "".join(said) == "Hello."
        assert (await events.get_final_response()).output_text == "Hello."


async def test_a_background_turn_returns_at_once_and_can_be_followed() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("Later.")]) as api:
        begun = await api.openai.responses.create(model="demo-model", input="Hi", background=True)
        assert begun.status == "in_progress"
        assert (await api.openai.responses.retrieve(begun.id)).status == "in_progress"
        gate.set()
        followed = await api.openai.responses.retrieve(begun.id, stream=True, starting_after=1)
        numbers = [event.sequence_number async for event in followed]
        assert numbers == list(range(2, 2 + len(numbers)))
        assert (await api.openai.responses.retrieve(begun.id)).output_text == "Later."


async def test_a_failed_turn_is_an_error_that_nobody_repeats() -> None:
    script = [ModelCallStarted(call=1), TextDelta(text="Half"), TurnFailed(error=REPORT, usage=USAGE)]
    async with serve_api(script, script) as api:
        answered = await api.http.post("/v1/responses", json={"input": "Hi"})
        assert answered.status_code == 429
        assert answered.headers["x-should-retry"] == "false"
        assert answered.json()["error"]["message"] == "Slow down."
        stored = next(iter(api.turns.state.responses.values()))
        assert stored.status == "failed"
        with pytest.raises(APIError, match="Slow down"):
            _ = [event async for event in await api.openai.responses.retrieve(stored.id, stream=True)]
        replayed = (await api.http.get(f"/v1/responses/{stored.id}?stream=true")).content
        assert replayed.index(b"event: error\n") < replayed.index(b"event: response.failed\n")
        assert (await api.http.get(f"/v1/responses/{stored.id}")).json()["output"][0]["status"] == "incomplete"


async def test_functions_of_the_client_go_out_and_their_outputs_come_in() -> None:
    async with serve_api(function_calls("c1"), answer("Rain.")) as api:
        first = await api.openai.responses.create(model="demo-model", input="Weather?", tools=[WEATHER])
        call = first.output[0]
        assert call.type == "function_call"
        second = await api.openai.responses.create(
            previous_response_id=first.id,
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "wet"}],
        )
        assert second.output_text == "Rain."


async def test_a_second_turn_at_once_is_a_conflict_not_to_be_repeated() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("x")]) as api:
        begun = await api.openai.responses.create(model="demo-model", input="Hi", background=True)
        answered = await api.http.post("/v1/responses", json={"input": "Hi", "previous_response_id": begun.id})
        assert (answered.status_code, answered.headers["x-should-retry"]) == (409, "false")
        gate.set()


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"input": "Hi", "bogus": 1}, 400, "bogus"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, 400, None),
        ({"input": "Hi", "model": "none"}, 404, "model"),
        ({"input": "Hi", "conversation": "conv_x"}, 404, "conversation"),
        ({"input": "Hi", "previous_response_id": "resp_x"}, 404, "previous_response_id"),
    ],
)
async def test_refusals_name_the_field(body: dict[str, Any], status: int, param: str | None) -> None:
    async with serve_api(strict_requests=True) as api:
        answered = await api.http.post("/v1/responses", json=body)
        assert answered.status_code == status
        assert answered.json()["error"]["param"] == (param or "input[0].content[0].image_url")
        assert "x-should-retry" not in answered.headers


async def test_a_body_of_another_type_is_refused() -> None:
    async with serve_api() as api:
        headers = {"content-type": "text/plain"}
        answered = await api.http.post("/v1/responses", content=b'{"input": "Hi"}', headers=headers)
        assert answered.status_code == 400


async def test_cancelling_answers_the_same_twice() -> None:
    async with serve_api([TextDelta(text="Half"), asyncio.Event()]) as api:
        begun = await api.openai.responses.create(model="demo-model", input="Hi", background=True)
        cancelled = await api.openai.responses.cancel(begun.id)
        assert cancelled.status == "cancelled"
        assert await api.openai.responses.cancel(begun.id) == cancelled


async def test_input_items_are_paged() -> None:
    given: Any = [{"role": "user", "content": str(number)} for number in range(5)]
    async with serve_api() as api:
        made = await api.openai.responses.create(model="demo-model", input=given)
        pages = api.openai.responses.input_items.list(made.id, limit=2)
        shown = [item.to_dict() async for item in pages]
        assert [item["content"][0]["text"] for item in cast("list[Any]", shown)] == ["4", "3", "2", "1", "0"]
        raw = (await api.http.get(f"/v1/responses/{made.id}/input_items?order=asc&limit=2")).json()
        assert raw["has_more"]
        for item in raw["data"]:
            check_item(item)
        missing = await api.http.get(f"/v1/responses/{made.id}/input_items?after=msg_x")
        assert (missing.status_code, missing.json()["error"]["param"]) == (404, "after")


async def test_a_deleted_response_is_gone() -> None:
    async with serve_api() as api:
        made = await api.openai.responses.create(model="demo-model", input="Hi")
        await api.openai.responses.delete(made.id)
        with pytest.raises(NotFoundError):
            await api.openai.responses.retrieve(made.id)


async def test_nothing_is_left_of_a_stream_that_is_not_stored() -> None:
    async with serve_api() as api:
        stream = await api.openai.responses.create(model="demo-model", input="Hi", store=False, stream=True)
        events = [event async for event in stream]
        last = events[-1]
        assert last.type == "response.completed"
        assert last.response.output_text == "Hello."
        while await api.turns.events.exists(last.response.id):  # noqa: ASYNC110 -- the turn's task ends by itself
            await asyncio.sleep(0)
        with pytest.raises(APIStatusError):
            await api.openai.responses.retrieve(last.response.id)


async def test_silence_is_filled_with_comments() -> None:
    gate = asyncio.Event()
    sent: list[bytes] = []

    async def batches() -> AsyncGenerator[tuple[LoggedEvent, ...], None]:
        await gate.wait()
        yield (
            LoggedEvent(sequence_number=0, type="a", body=b"{}"),
            LoggedEvent(sequence_number=1, type="b", body=b"1"),
        )

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message.get("body", b""))
        if sent[-1].startswith(b":"):
            gate.set()

    async with asyncio.timeout(PATIENCE_SECONDS):
        await EventStream(batches(), ResponsesFormat(), {}, heartbeat_seconds=0.001)({}, receive, send)
    body = b"".join(sent)
    assert body.startswith(b": keep-alive\n\n")
    assert body.endswith(b"event: a\ndata: {}\n\nevent: b\ndata: 1\n\ndata: [DONE]\n\n")


async def test_the_description_holds_the_request_whole() -> None:
    async with serve_api() as api:
        described = (await api.http.get("/openapi.json")).json()
        operation = described["paths"]["/v1/responses"]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert "previous_response_id" in schema["properties"]
        assert "$defs" not in str(schema)
