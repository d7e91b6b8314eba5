"""Chat completions over HTTP, called by the official client and by hand."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from openai import APIError, BadRequestError, NotFoundError, RateLimitError
from pydantic import BaseModel

from backend.turns.http.event_stream import DONE
from shared.models.canonical import canonical_parts, message_json, read_reasoning
from shared.models.events import FinishReason, MessagesAdded, RefusalDelta, TextDelta
from shared.models.execution import ExecutionRequest
from shared.models.values import JsonObject
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.http_api import client_of
from tests.fakes.openai_types import check_chunk, check_completion
from tests.fakes.served_turns import CHAT, FAILS, HI, WEATHER, serve_api

CHOICE: Any = {"type": "function", "function": {"name": "f"}}
ID = "x-ballast-response-id"


async def test_a_plain_answer_is_a_stored_response_too() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        raw = await api.openai.chat.completions.with_raw_response.create(model="demo-model", messages=HI)
        check_completion(orjson.loads(raw.content))
        completion = raw.parse()
        assert completion.choices[0].message.content == "Hello."
        assert raw.headers[ID] == completion.id
        stored = await api.openai.responses.retrieve(raw.headers[ID])
        assert (stored.output_text, stored.created_at) == ("Hello.", completion.created)
        prompts = await api.http.get(f"/v1/responses/{completion.id}/prompts")
        assert prompts.status_code == 200


async def test_chunks_come_in_frames_of_data_alone() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        asked = {"messages": HI, "stream": True, "stream_options": {"include_usage": True}}
        answered = await api.http.post(CHAT, json=asked)
        assert answered.headers["content-type"].startswith("text/event-stream")
        assert answered.content.endswith(b"\n\n" + DONE)
        *frames, _, rest = answered.content.split(b"\n\n")
        assert rest == b""
        chunks = [check_chunk(frame.removeprefix(b"data: ")) for frame in frames]
        assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]] == ["", "Hel", "lo.", None]
        assert chunks[-1]["usage"]["total_tokens"] == 18
        assert answered.headers[ID] == chunks[0]["id"]


async def test_the_stream_helper_gets_the_final_completion() -> None:
    async with serve_api(answer("Hel", "lo."), function_calls("c1", "c2", text="Look.")) as api:
        async with api.openai.chat.completions.stream(model="demo-model", messages=HI) as events:
            said = [event.delta async for event in events if event.type == "content.delta"]
            assert "".join(said) == "Hello."
            assert (await events.get_final_completion()).choices[0].message.content == "Hello."
        async with api.openai.chat.completions.stream(model="demo-model", messages=HI, tools=[WEATHER]) as events:
            final = (await events.get_final_completion()).choices[0]
            assert [call.id for call in final.message.tool_calls or ()] == ["c1", "c2"]
            assert (final.finish_reason, final.message.content) == ("tool_calls", "Look.")


class Colour(BaseModel):
    name: str


async def test_an_answer_is_parsed_by_its_schema() -> None:
    async with serve_api(answer('{"name": "red"}')) as api:
        parsed = await api.openai.chat.completions.parse(model="demo-model", messages=HI, response_format=Colour)
        assert parsed.choices[0].message.parsed == Colour(name="red")
        [sent] = api.turns.sent
        assert (sent.parameters.text_format or {})["type"] == "json_schema"


async def test_calls_go_out_and_the_resent_history_brings_their_results() -> None:
    async with serve_api(function_calls("c1"), answer("Rain.")) as api:
        first = await api.openai.chat.completions.create(model="demo-model", messages=HI, tools=[WEATHER])
        said = first.choices[0].message
        resent: Any = [*HI, said.model_dump(), {"role": "tool", "tool_call_id": "c1", "content": "wet"}]
        second = await api.openai.chat.completions.create(model="demo-model", messages=resent, tools=[WEATHER])
        assert second.choices[0].message.content == "Rain."
        _, sent = api.turns.sent
        assert [message.role for message in sent.history] == ["user", "assistant", "tool"]


CALLS: Any = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
LOOKED: Any = {"role": "assistant", "content": None, "tool_calls": CALLS}
RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "wet"}


def answers_sent(request: ExecutionRequest) -> list[JsonObject]:
    return [message_json(message) for message in messages_of_request(request) if message.role == "assistant"]


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize(
    "members", [{"reasoning_content": "Hm."}, {"reasoning": ""}, {"reasoning_content": "A", "reasoning": "B"}]
)
async def test_reasoning_that_a_client_gives_is_sent_in_the_member_that_it_gave(members: Any, store: bool) -> None:
    async with serve_api() as api:
        said = {"role": "assistant", "content": "Looking.", **members}
        resent = [*HI, said, *HI, LOOKED | members, RESULT]
        answered = await api.http.post(CHAT, json={"messages": resent, "store": store, "tools": [WEATHER]})
        assert (answered.status_code, answered.headers.get("x-ballast-ignored")) == (200, None)
        [sent] = api.turns.sent
        assert answers_sent(sent) == [said, LOOKED | members]


async def test_a_history_with_reasoning_is_recognised_whatever_its_client_makes_of_that() -> None:
    async with serve_api(answer("Rain."), answer("Snow."), answer("Fog.")) as api:
        rain, snow = ({"role": "assistant", "content": text, "reasoning_content": "?"} for text in ("Rain.", "Snow."))
        asked = [
            [*HI, LOOKED | {"reasoning_content": "Hm."}, RESULT],
            [*HI, LOOKED, RESULT, rain, *HI],
            [*HI, LOOKED | {"reasoning": "Oh."}, RESULT, rain, *HI, snow, *HI],
        ]
        bodies = [{"messages": messages, "tools": [WEATHER]} for messages in asked]
        answered = [await api.http.post(CHAT, json=body) for body in bodies]
        parts = [canonical_parts(sent.tools, messages_of_request(sent)) for sent in api.turns.sent]
        assert [after[: len(before)] == before for before, after in pairwise(parts)] == [True, True]
        assert len(api.turns.state.conversations) == 1
        assert answers_sent(api.turns.sent[-1]) == [
            LOOKED | {"reasoning_content": "Hm."},
            {"role": "assistant", "content": "Rain."},
            {"role": "assistant", "content": "Snow."},
        ]
        prompts = (await api.http.get(f"/v1/responses/{answered[-1].headers[ID]}/prompts")).json()
        assert [call["first_difference"] for call in prompts["data"]] == [None]


async def test_what_a_model_reasoned_in_a_loop_of_tools_goes_back_whether_or_not_its_client_sends_it() -> None:
    script = function_calls("c1")
    for place, event in enumerate(script):
        if isinstance(event, MessagesAdded):
            [said] = event.messages
            thought = said.model_copy(update={"reasoning": read_reasoning({"reasoning": "Hm."})})
            script[place] = MessagesAdded(messages=(thought,))
    async with serve_api(script, answer("Rain."), script, answer("Rain.")) as api:
        for members in ({}, {"reasoning_content": "Hm."}):
            await api.http.post(CHAT, json={"messages": HI, "tools": [WEATHER]})
            await api.http.post(CHAT, json={"messages": [*HI, LOOKED | members, RESULT], "tools": [WEATHER]})
            assert answers_sent(api.turns.sent[-1]) == [LOOKED | {"reasoning": "Hm."}]


async def test_cuts_and_refusals() -> None:
    refusal = [RefusalDelta(text="No.") if isinstance(step, TextDelta) else step for step in answer("No.")]
    async with serve_api(answer("Half", finish_reason=FinishReason.LENGTH), refusal) as api:
        cut = await api.openai.chat.completions.create(model="demo-model", messages=HI, max_completion_tokens=1)
        assert cut.choices[0].finish_reason == "length"
        refused = await api.openai.chat.completions.create(model="demo-model", messages=HI)
        assert (refused.choices[0].message.refusal, refused.choices[0].message.content) == ("No.", None)


async def test_a_failure_is_an_error_before_and_in_the_stream() -> None:
    async with serve_api(FAILS, FAILS, FAILS) as api:
        with pytest.raises(RateLimitError) as caught:
            await api.openai.chat.completions.create(model="demo-model", messages=HI)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert caught.value.response.headers[ID] in api.turns.state.responses
        stream = await api.openai.chat.completions.create(model="demo-model", messages=HI, stream=True)
        with pytest.raises(APIError, match="Slow down"):
            _ = [chunk async for chunk in stream]
        answered = (await api.http.post(CHAT, json={"messages": HI, "stream": True})).content
        error = {"message": "Slow down.", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}
        assert answered.endswith(b"data: " + orjson.dumps({"error": error}) + b"\n\n" + DONE)
        assert b'"content":"Half"' in answered


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"messages": HI, "bogus": 1}, 400, "bogus"),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, 400, "messages[0].tool_call_id"),
        ({"messages": HI, "functions": [{"name": "f"}]}, 400, "functions"),
        ({"messages": HI, "model": "none"}, 404, "model"),
        (
            {"messages": HI, "tool_choice": {"type": "function", "function": {"name": "f"}}},
            400,
            "tool_choice.function.name",
        ),
        (
            {"messages": HI, "tools": [{"type": "file_search", "vector_store_ids": ["kb_x"]}]},
            404,
            "tools[0].vector_store_ids[0]",
        ),
    ],
)
async def test_refusals_name_the_field_as_the_client_wrote_it(body: dict[str, Any], status: int, param: str) -> None:
    async with serve_api(strict_requests=True) as api:
        answered = await api.http.post(CHAT, json=body)
        assert (answered.status_code, answered.json()["error"]["param"]) == (status, param)
        assert ID not in answered.headers
        assert not api.turns.state.responses


async def test_errors_about_calls_do_not_speak_of_the_items_of_another_api() -> None:
    called = {"role": "assistant", "tool_calls": [{"id": "c1", **CHOICE, "function": {"name": "f", "arguments": ""}}]}
    unanswered: Any = [*HI, called, *HI]
    unasked: Any = [*HI, called, {"role": "tool", "tool_call_id": "c2", "content": "x"}]
    async with serve_api() as api:
        for messages in (unanswered, unasked):
            error = (await api.http.post(CHAT, json={"messages": messages})).json()["error"]
            assert error["message"].startswith(f"{error['param']}: No ")
            assert "function_call" not in error["message"]


async def test_strangers_and_other_media_are_refused_as_at_the_other_server() -> None:
    async with serve_api() as api:
        async with client_of(api.app, "wrong") as stranger:
            assert (await stranger.post(CHAT, json={"messages": HI})).status_code == 401
        headers = {"content-type": "text/plain"}
        assert (await api.http.post(CHAT, content=b"{}", headers=headers)).status_code == 400
        assert (await api.http.get(CHAT)).status_code == 405


async def test_nothing_is_left_of_a_turn_that_is_not_stored() -> None:
    async with serve_api() as api:
        completion = await api.openai.chat.completions.create(model="demo-model", messages=HI, store=False)
        assert completion.choices[0].message.content == "Hello."
        assert not api.turns.state.responses
        with pytest.raises(NotFoundError):
            await api.openai.responses.retrieve(completion.id)
        with pytest.raises(BadRequestError):
            await api.openai.chat.completions.create(
                model="demo-model", messages=HI, store=False, extra_headers={"Idempotency-Key": "k"}
            )


async def test_the_same_key_brings_the_same_answer_in_either_form() -> None:
    async with serve_api(answer("Hel", "lo.")) as api:
        headers = {"Idempotency-Key": "k"}
        first = await api.http.post(CHAT, json={"messages": HI}, headers=headers)
        again = await api.http.post(CHAT, json={"messages": HI}, headers=headers)
        assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
        assert again.headers[ID] == first.headers[ID]
        streamed = await api.http.post(CHAT, json={"messages": HI, "stream": True}, headers=headers)
        frames = streamed.content.split(b"\n\n")[:-2]
        said = "".join(check_chunk(frame[6:])["choices"][0]["delta"].get("content") or "" for frame in frames)
        assert said == "Hello."
        assert len(api.turns.sent) == 1
        other = await api.http.post("/v1/responses", json={"input": "Hi"}, headers=headers)
        assert other.status_code == 422


async def test_every_answer_about_a_response_names_it() -> None:
    async with serve_api(answer("a"), FAILS) as api:
        made = await api.http.post("/v1/responses", json={"input": "Hi"})
        response_id = made.json()["id"]
        failed = await api.http.post("/v1/responses", json={"input": "Hi", "stream": True})
        assert failed.headers[ID] in api.turns.state.responses
        path = f"/v1/responses/{response_id}"
        for answered in (
            made,
            await api.http.get(path),
            await api.http.get(f"{path}?stream=true"),
            await api.http.post(f"{path}/cancel"),
        ):
            assert answered.headers[ID] == response_id


async def test_the_description_holds_the_request_whole() -> None:
    async with serve_api() as api:
        described = (await api.http.get("/openapi.json")).json()
        schema = described["paths"][CHAT]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {"messages", "response_format", "max_completion_tokens"} <= set(schema["properties"])
        assert "$defs" not in str(schema)


async def test_a_client_that_resends_its_messages_stays_in_one_conversation_through_either_api() -> None:
    searched = [*answer("Let me see.")[:-1], *answer("Rain.")]
    async with serve_api(function_calls("c1", text="I look."), searched, answer("Yes."), answer("Bye.")) as api:
        client = api.openai.chat.completions
        messages: list[Any] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Weather?"}]
        first = await client.create(model="demo-model", messages=messages, tools=[WEATHER])
        messages.append(first.choices[0].message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": "c1", "content": "wet"})
        async with client.stream(model="demo-model", messages=messages, tools=[WEATHER]) as events:
            second = await events.get_final_completion()
        assert second.choices[0].message.content == "Let me see.\n\nRain."
        messages.append({"role": "assistant", "content": second.choices[0].message.content})
        messages.append({"role": "user", "content": "Sure?"})
        third = await client.create(model="demo-model", messages=messages, tools=[WEATHER])
        items: list[Any] = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "wet"},
            {"role": "assistant", "content": "Let me see."},
            {"role": "assistant", "content": "Rain."},
            {"role": "user", "content": "Sure?"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Bye"},
        ]
        weather: Any = {"type": "function", **WEATHER["function"]}
        fourth = await api.openai.responses.create(
            model="demo-model", input=items, instructions="Be kind.", tools=[weather]
        )
        items += [{"role": "assistant", "content": "Bye."}, {"role": "user", "content": "Still there?"}]
        fifth = await api.openai.responses.create(model="demo-model", input=items)
        ids = [first.id, second.id, third.id, fourth.id, fifth.id]
        stored = [await api.openai.responses.retrieve(each) for each in ids]
        assert len({response.conversation.id for response in stored if response.conversation}) == 1
        assert [sent.epoch for sent in api.turns.sent] == [0, 0, 0, 0, 1]
        assert (fifth.instructions, fifth.tools) == (None, [])
