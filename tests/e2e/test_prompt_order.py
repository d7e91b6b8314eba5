"""What stands where in the requests that reach the model."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from shared.prompts.knowledge_base import CANNOT_ANSWER, KNOWLEDGE_SECTION
from tests.e2e.pair import Pair
from tests.e2e.turns import (
    SUFFIX,
    Body,
    bare_client,
    file_search,
    messages_in,
    new_base,
    new_conversation,
    says,
    turn,
    wire,
)
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall

KNOWLEDGE_TOOLS = ["knowledge_base_list_documents", "knowledge_base_read_document", "knowledge_base_search"]
WEATHER: Body = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
LAMP: Body = {"type": "function", "name": "a_lamp", "description": "Switch it.", "parameters": {"type": "object"}}
IMAGE: Body = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}


def roles(request: RecordedRequest) -> list[str]:
    return [message["role"] for message in messages_in(request)]


def head(request: RecordedRequest) -> bytes:
    """Return what stands before the messages: model, cache key, tools."""
    return request.body[: request.body.index(b'"messages":')]


def tool_names(request: RecordedRequest) -> list[str]:
    return [tool["function"]["name"] for tool in request.json_body["tools"]]


def suffix_at(created_at: int) -> str:
    return f"\n\n<time>{datetime.fromtimestamp(created_at, UTC):%Y-%m-%d %H:%M} UTC</time>"


async def test_the_second_turn_repeats_the_first_byte_for_byte(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("  Fir", "st é", "中", "文\n", " ")), Reply(text=("Second.",)))
    async with bare_client(pair, "order") as client:
        base_id = await new_base(client, "Turbines", cooling="Turbines are cooled by air.")
        bound = {"tools": [file_search(base_id)], "instructions": "Be brief."}
        conversation = await new_conversation(client)
        first = await turn(client, "What cools it?", conversation=conversation, **bound)
        await turn(client, "And now?", conversation=conversation)

    one, two = await model.requests()
    assert roles(one) == ["system", "user", "user"]
    assert roles(two) == ["system", "user", "user", "assistant", "user"]
    system, context, question = messages_in(one)
    assert system["content"] == f"Be brief.\n\n{KNOWLEDGE_SECTION}"
    assert base_id in context["content"]
    assert question["content"] == f"What cools it?{suffix_at(first['created_at'])}"

    *again, answer, new_question = messages_in(two)
    assert [wire(message) for message in again] == [wire(message) for message in (system, context, question)]
    assert one.body[: one.body.rindex(wire(question)) + len(wire(question))] in two.body
    assert answer == {"role": "assistant", "content": "  First é中文\n "}
    assert SUFFIX.search(new_question["content"])
    assert head(two) == head(one)
    assert one.json_body["prompt_cache_key"]


async def test_parts_get_the_suffix_as_a_last_text_part(pair: Pair, model: FakeModelControl) -> None:
    content = [{"type": "input_text", "text": "What is this?"}, IMAGE]
    async with bare_client(pair, "order") as client:
        first = await turn(client, [{"role": "user", "content": content}])
        await turn(client, "And this?", previous_response_id=first["id"])
    one, two = await model.requests()
    assert roles(one) == ["system", "user"]
    assert messages_in(one)[-1]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": IMAGE["image_url"], "detail": "low"}},
        {"type": "text", "text": suffix_at(first["created_at"])},
    ]
    assert wire(messages_in(one)[-1]) in two.body


@pytest.mark.parametrize("bound", [False, True])
async def test_without_context_there_is_no_context_message(pair: Pair, model: FakeModelControl, bound: bool) -> None:
    async with bare_client(pair, "order") as client:
        base_id = await new_base(client, "Pumps")
        conversation = await new_conversation(client)
        await turn(client, "One?", conversation=conversation, tools=[file_search(base_id)] if bound else [])
        await turn(client, "Two?", conversation=conversation, tools=[])
    one, two = await model.requests()
    assert roles(one) == ["system", *(["user"] if bound else []), "user"]
    kept, unbound = (["user"], ["user"]) if bound else ([], [])
    assert roles(two) == ["system", *kept, "user", "assistant", *unbound, "user"]
    assert ("are now: none" in str(messages_in(two)[-2]["content"])) is bound
    assert tool_names(one) == tool_names(two) == KNOWLEDGE_TOOLS


async def test_nothing_of_a_request_enters_the_system_message(pair: Pair, model: FakeModelControl) -> None:
    seen: list[str] = []
    for user_id in ("system-a", "system-b"):
        async with bare_client(pair, user_id) as client:
            base_id = await new_base(client, f"Base of {user_id}")
            response = await turn(
                client, f"I am {user_id}", tools=[file_search(base_id)], metadata={"seat": "12"}, user=user_id
            )
            seen += [user_id, base_id, response["id"], response["conversation"]["id"]]
    one, two = (messages_in(request)[0] for request in await model.requests())
    assert one == two == {"role": "system", "content": KNOWLEDGE_SECTION}
    assert not [text for text in (*seen, str(datetime.now(UTC).year)) if text in one["content"]]


async def test_tools_are_sorted_whoever_brought_them(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "order") as client:
        await turn(client, "Hi", tools=[WEATHER, LAMP])
        await turn(client, "Hi", tools=[LAMP, WEATHER])
    one, two = await model.requests()
    assert tool_names(one) == ["a_lamp", *KNOWLEDGE_TOOLS, "weather"]
    assert one.json_body["tools"] == two.json_body["tools"]


async def test_the_last_model_call_keeps_the_tools_and_must_answer(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Enough.",)), when='"tool_choice":"none"')
    await model.script(Reply(tool_calls=(ScriptedCall(name="nothing"),), repeat=True))
    async with bare_client(pair, "order") as client:
        base_id = await new_base(client, "Reeds")
        response = await turn(client, "Go on", tools=[file_search(base_id)], tool_choice="required")
    requests = await model.requests()
    assert [request.json_body["tool_choice"] for request in requests] == ["required", *["auto"] * 10, "none"]
    assert {head(request) for request in requests} == {head(requests[0])}
    assert response["status"] == "completed"
    for earlier, later in pairwise(requests):
        assert messages_in(later)[: len(messages_in(earlier))] == messages_in(earlier)


@pytest.mark.parametrize("is_bound", [False, True])
async def test_a_required_call_is_one_of_the_tools_that_were_given(
    pair: Pair, model: FakeModelControl, is_bound: bool
) -> None:
    search = ScriptedCall(name="knowledge_base_search", arguments='{"query": "reeds"}')
    await model.script(Reply(tool_calls=(search,)), Reply(tool_calls=(ScriptedCall(name="weather"),)))
    async with bare_client(pair, "order") as client:
        bases = [file_search(await new_base(client, "Reeds"))] if is_bound else []
        response = await turn(client, "Weather?", tools=[WEATHER, *bases], tool_choice="required")
    requests = await model.requests()
    # A search satisfies the demand where the client asked for one; elsewhere its own functions are meant.
    assert [request.json_body["tool_choice"] for request in requests] == [
        "required",
        "auto" if is_bound else "required",
    ]
    assert len({head(request) for request in requests}) == 1
    assert response["output"][-1]["name"] == "weather"


async def test_function_outputs_continue_without_context_and_suffix(pair: Pair, model: FakeModelControl) -> None:
    call = ScriptedCall(name="weather", arguments='{"city": "Köln"}', call_id="call_weather")
    await model.script(Reply(text=("Let me see.",), tool_calls=(call,)), Reply(text=("Sunny.",)))
    async with bare_client(pair, "order") as client:
        base_id = await new_base(client, "Clouds")
        tools = [WEATHER, file_search(base_id)]
        asked = await turn(client, "Weather?", tools=tools)
        output = {"type": "function_call_output", "call_id": "call_weather", "output": "sunny"}
        answered = await turn(client, [output], previous_response_id=asked["id"])
        await says(model, "Bye.")
        await turn(client, "Thanks", previous_response_id=answered["id"])
    one, two, three = await model.requests()
    assert roles(one) == ["system", "user", "user"]
    expected: list[Body] = [
        *messages_in(one),
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "call_weather",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Köln"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_weather", "content": "sunny"},
    ]
    assert messages_in(two) == expected
    assert messages_in(three)[:6] == [*expected, {"role": "assistant", "content": "Sunny."}]
    assert roles(three)[6:] == ["user"]


async def test_a_restricted_member_gets_the_restricted_form_of_the_context(pair: Pair, model: FakeModelControl) -> None:
    call = ScriptedCall(name="knowledge_base_search", arguments='{"query": "margin"}')
    await model.script(Reply(tool_calls=(call,)), Reply(text=("No.",)))
    async with bare_client(pair, "order") as owner, bare_client(pair, "analyst") as analyst:
        base_id = await new_base(owner, "Board", margin="The margin is 0.62 per litre.")
        member = f"/v1/knowledge_bases/{base_id}/members/analyst"
        assert (await owner.put(member, json={"role": "restricted_analyst"})).status_code == 201
        response = await turn(analyst, "What is the margin?", tools=[file_search(base_id)])
    one, two = await model.requests()
    assert "restricted" in messages_in(one)[1]["content"]
    assert "All about Board." not in one.body.decode()
    assert tool_names(one) == ["knowledge_base_search"]
    assert messages_in(two)[-1]["content"] == CANNOT_ANSWER
    assert "0.62 per litre" not in two.body.decode() + str(response)
