"""`/v1/responses/{id}/prompts` beside what reached the provider, and drift that is made to happen."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.turns import Body, bare_client, file_search, new_base, prompts, says, tamper, turn
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.servers.services import Launch, lines_of

OURS = ("kind", "position", "tokens", "reused")
SEARCH = ScriptedCall(name="knowledge_base_search", arguments='{"query": "fox"}')
WEATHER: Body = {"type": "function", "name": "weather", "parameters": {"type": "object", "b": 1, "a": 2}}


def sent_form(message: Body) -> Body:
    return {name: value for name, value in message.items() if name not in OURS}


def check_shown(shown: list[Body], recorded: Sequence[RecordedRequest]) -> None:
    """Compare what is shown with the bytes that the provider got."""
    assert len(shown) == len(recorded)
    for call, request in zip(shown, recorded, strict=True):
        forms = [sent_form(message) for message in call["messages"]]
        assert forms == request.json_body["messages"]
        assert orjson.dumps(call["tools"]) in request.body
        for form in forms:
            assert orjson.dumps(form) in request.body


async def test_prompts_are_what_the_provider_got(pair: Pair, model: FakeModelControl) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,aaaa", "detail": "low"}
    await model.script(Reply(text=("Let me look. ",), tool_calls=(SEARCH,)), Reply(text=("Red.",)))
    async with bare_client(pair, "prompts") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red. 狐狸")
        tools = [WEATHER, file_search(base_id)]
        first = await turn(client, "Who is red?", tools=tools, instructions="Be brief.")
        await model.script(Reply(tool_calls=(ScriptedCall(name="weather", call_id="call_w"),)), Reply(text=("Sun.",)))
        asked = [{"role": "user", "content": [{"type": "input_text", "text": "And this?"}, image]}]
        second = await turn(client, asked, previous_response_id=first["id"])
        output = {"type": "function_call_output", "call_id": "call_w", "output": "sunny"}
        third = await turn(client, [output], previous_response_id=second["id"])
        await says(model, "Bye.")
        changed = await client.patch(f"/v1/knowledge_bases/{base_id}", json={"summary": "All about foxes."})
        assert changed.status_code == 200
        fourth = await turn(client, "Thanks", previous_response_id=third["id"])
        shown = await prompts(client, first, second, third, fourth)
    recorded = await model.requests()
    check_shown(shown, recorded)
    for call, (before, now) in zip(shown[1:], pairwise(recorded), strict=True):
        sent_before = before.json_body["messages"]
        assert [message["reused"] for message in call["messages"]].count(True) == len(sent_before)
        sizes = [len(orjson.dumps(message)) for message in sent_before]
        assert call["reused_bytes"] == sum(sizes) + len(orjson.dumps(now.json_body["tools"]))
    assert [call["epoch_reason"] for call in shown] == ["new_conversation", None, None, None, None]
    assert {call["first_difference"] for call in shown} == {None}


async def test_restricted_turns_are_shown_as_they_were_sent(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(SEARCH,)), Reply(text=("No.",)), Reply(text=("Bye.",)))
    async with bare_client(pair, "prompts") as owner, bare_client(pair, "prompts-analyst") as analyst:
        base_id = await new_base(owner, "Board", margin="The margin is 0.62.")
        member = f"/v1/knowledge_bases/{base_id}/members/prompts-analyst"
        assert (await owner.put(member, json={"role": "restricted_analyst"})).status_code == 201
        first = await turn(analyst, "What is the margin?", tools=[file_search(base_id)])
        second = await turn(analyst, "Thanks", previous_response_id=first["id"])
        check_shown(await prompts(analyst, first, second), await model.requests())
        refused = await owner.get(f"/v1/responses/{first['id']}/prompts")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")


@pytest.fixture
def tail_pair(launch: Launch, tmp_path: Path) -> Pair:
    return start_pair(launch, tmp_path, PairOptions(backend={"BACKEND_CONTEXT_POLICY": "tail"}))


async def test_what_is_not_kept_in_the_log_is_shown_too(tail_pair: Pair) -> None:
    async with tail_pair.control() as model, bare_client(tail_pair, "prompts") as client:
        await model.script(Reply(tool_calls=(SEARCH,)), Reply(text=("Red.",)), Reply(text=("Bye.",)))
        tools = [file_search(await new_base(client, "Farm", fox="The fox is red."))]
        first = await turn(client, "Who is red?", tools=tools)
        second = await turn(client, "Thanks", previous_response_id=first["id"])
        shown = await prompts(client, first, second)
        check_shown(shown, await model.requests())
    tail = [(m["kind"], m["position"]) for call in shown for m in call["messages"] if m["kind"] == "dynamic_context"]
    assert tail == [("dynamic_context", None)] * 3
    assert [sum(message["reused"] for message in call["messages"]) for call in shown] == [0, 3, 1]
    assert {call["first_difference"] for call in shown} == {None}
    assert drift_count((await tail_pair.metrics())[0]) == 0.0


def figure(text: str, name: str) -> float:
    """A series with labels is not shown before it has counted something, as in a pair that has served no turn."""
    return next((float(line.split(" ")[1]) for line in text.splitlines() if line.startswith(f"{name} ")), 0.0)


def drift_count(text: str) -> float:
    return figure(text, "ballast_prompt_drift_total")


async def test_drift_is_counted_and_logged_without_a_word(small_pair: Pair, small_model: FakeModelControl) -> None:
    before = (await small_pair.metrics())[0]
    async with bare_client(small_pair, "prompts") as client:
        first = await turn(client, "Is the sea blue?")
        tamper(small_pair, first["conversation"]["id"], "blue", "grey")
        second = await turn(client, "And now?", previous_response_id=first["id"])
        (call,) = await prompts(client, second)
        after = (await small_pair.metrics())[0]
        third = await turn(client, "And then?", previous_response_id=second["id"])
    lines: list[dict[str, Any]] = [
        line for line in lines_of(small_pair.backend, turn_id=second["id"]) if line["event"] == "Prompt drift"
    ]
    assert len(lines) == 1
    assert lines[0]["conversation_id"] == first["conversation"]["id"]
    assert (lines[0]["call"], lines[0]["first_difference"]) == (1, "messages[1].content")
    assert "grey" not in small_pair.backend.log()
    assert (call["first_difference"], call["shortfall"]) == ("messages[1].content", "ours")
    assert drift_count(after) == drift_count(before) + 1
    assert drift_count((await small_pair.metrics())[0]) == drift_count(after), third["id"]
    for part in ("reused", "new"):
        name = f'ballast_prompt_tokens_total{{part="{part}"}}'
        assert figure(after, name) > figure(before, name)
