"""Tool calls and their results, as they stand in the requests that reach the model.

A tool that hangs and one that raises cannot be had from outside: tests/unit/chat_shell/turns/test_tools.py.
"""

from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from shared.models.execution import TurnLimits
from shared.prompts import knowledge_base as texts
from shared.prompts import tool_results as result_texts
from tests.e2e.chat_shell_calls import FULL, plain_request, through_grpc, through_http
from tests.e2e.pair import Pair, lone_chat_shell
from tests.e2e.turns import (
    Body,
    bare_client,
    file_search,
    messages_in,
    new_base,
    search,
    text_of,
    tool_results,
    turn,
)
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.servers.ports import free_port
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

WEATHER: Body = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
FORCED_TO_ANSWER = '"tool_choice":"none"'


def found_names(result: Body) -> list[str]:
    """Return the titles of the documents in a search result."""
    return [document["title"] for document in orjson.loads(result["content"])["documents"]]


async def test_parallel_calls_are_answered_in_call_order(pair: Pair, model: FakeModelControl) -> None:
    calls = (
        search("fox", "call_c"),
        ScriptedCall(name="knowledge_base_list_documents", arguments="{}", call_id="call_a"),
        ScriptedCall(name="knowledge_base_read_document", arguments='{"document": "hen.md"}', call_id="call_b"),
    )
    await model.script(Reply(text=("Let me look. ",), tool_calls=calls), Reply(text=("Done.",)))
    async with bare_client(pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.", hen="The hen is brown.")
        response = await turn(client, "Who is red?", tools=[file_search(base_id)])
    one, two = await model.requests()
    assert messages_in(two)[: len(messages_in(one))] == messages_in(one)
    called, *results = messages_in(two)[len(messages_in(one)) :]
    assert called["content"] == "Let me look. "
    assert [(call["id"], call["function"]["arguments"]) for call in called["tool_calls"]] == [
        (call.call_id, call.arguments) for call in calls
    ]
    assert [result["tool_call_id"] for result in results] == ["call_c", "call_a", "call_b"]
    assert "The fox is red." in results[0]["content"]
    assert '"total": 2' in results[1]["content"]
    assert "The hen is brown." in results[2]["content"]
    assert [item["type"] for item in response["output"]] == ["message", "file_search_call", "message"]
    assert response["output"][1]["queries"] == ["fox"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ScriptedCall(name="rm_rf"), result_texts.TOOL_UNKNOWN + "knowledge_base_list_documents, "),
        (ScriptedCall(name="knowledge_base_search", arguments='{"query": '), result_texts.ARGUMENTS_NO_JSON),
        (ScriptedCall(name="knowledge_base_search", arguments="[1, 2]"), result_texts.ARGUMENTS_NO_OBJECT),
        (ScriptedCall(name="knowledge_base_search", arguments='{"query": "\\ud800"}'), result_texts.ARGUMENTS_NO_JSON),
        (ScriptedCall(name="knowledge_base_search", arguments="{}"), result_texts.ARGUMENTS_REJECTED + "query: "),
        (search("x", knowledge_base_ids=["kb_of_others"]), texts.BASE_NOT_IN_SCOPE),
        (ScriptedCall(name="knowledge_base_read_document", arguments='{"document": "no"}'), texts.NO_SUCH_DOCUMENT),
    ],
)
async def test_a_call_that_cannot_run_is_answered_in_words(
    small_pair: Pair, small_model: FakeModelControl, call: ScriptedCall, words: str
) -> None:
    await small_model.script(Reply(tool_calls=(call,)), Reply(text=("Sorry.",)))
    async with bare_client(small_pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        response = await turn(client, "Go", tools=[file_search(base_id)])
    _, two = await small_model.requests()
    called, result = messages_in(two)[-2:]
    assert called["tool_calls"][0]["function"] == {"name": call.name, "arguments": call.arguments}
    assert result["content"].startswith(words)
    assert (response["status"], text_of(response)) == ("completed", "Sorry.")


async def test_a_base_that_is_deleted_in_the_middle_of_a_turn_fails_its_search_only(
    pair: Pair, model: FakeModelControl
) -> None:
    lost = Reply(tool_calls=(search("fox"),), hold_after=0)
    await model.script(lost, Reply(text=("I cannot tell.",)))
    async with bare_client(pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        started = await turn(client, "Go", tools=[file_search(base_id)], background=True)
        await model.wait_held()
        assert (await client.delete(f"/v1/knowledge_bases/{base_id}")).status_code == 200
        await model.release()
        followed = await client.get(f"/v1/responses/{started['id']}?stream=true")
        response = (await client.get(f"/v1/responses/{started['id']}")).json()
    _, two = await model.requests()
    assert tool_results(two)[-1]["content"] == result_texts.TOOL_NOT_PERMITTED
    assert response["status"] == "completed"
    assert response["output"][0]["status"] == "failed"
    assert "response.completed" in followed.text


async def test_a_forged_ticket_gets_nothing(small_pair: Pair, small_model: FakeModelControl) -> None:
    await small_model.script(Reply(tool_calls=(search("fox"),)), Reply(text=("No.",)))
    told = await through_grpc(small_pair, plain_request(knowledge=FULL))
    _, two = await small_model.requests()
    assert tool_results(two)[-1]["content"] == result_texts.TOOL_NOT_PERMITTED
    assert told.events[-1].type == "turn_finished"


async def test_more_than_ten_knowledge_calls_are_refused(pair: Pair, model: FakeModelControl) -> None:
    at_once = tuple(search(f"fox {number}", f"call_{number}") for number in range(8))
    await model.script(
        Reply(tool_calls=at_once),
        Reply(tool_calls=tuple(search("hen", f"call_more_{number}") for number in range(4))),
        Reply(tool_calls=(search("hen", "call_last"),)),
        Reply(text=("Enough.",)),
    )
    async with bare_client(pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        response = await turn(client, "Go", tools=[file_search(base_id)])
    results = tool_results((await model.requests())[-1])
    refused = [result["content"] == texts.CALL_LIMIT_REACHED for result in results]
    assert refused == [False] * 10 + [True] * 3
    searches = [item for item in response["output"] if item["type"] == "file_search_call"]
    assert [item["status"] for item in searches] == ["completed"] * 10
    assert text_of(response) == "Enough."


async def test_a_caller_may_allow_fewer_calls(small_pair: Pair, small_model: FakeModelControl) -> None:
    await small_model.script(Reply(tool_calls=(search("a", "call_1"), search("b", "call_2"))), Reply(text=("Ok.",)))
    async with bare_client(small_pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        await turn(client, "Go", tools=[file_search(base_id)], max_tool_calls=1)
    first, second = tool_results((await small_model.requests())[-1])
    assert first["content"] != texts.CALL_LIMIT_REACHED
    assert second["content"] == texts.CALL_LIMIT_REACHED


async def test_a_model_that_calls_tools_for_ever_answers_on_the_last_call(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    """It repeats one call id all the time; each call still has an id of its own, and its result behind it."""
    await small_model.script(
        Reply(text=("All I know.",), tool_calls=(ScriptedCall(name="more", call_id="again"),)), when=FORCED_TO_ANSWER
    )
    await small_model.script(Reply(tool_calls=(ScriptedCall(name="more", call_id="again"),), repeat=True))
    async with bare_client(small_pair, "loop") as client:
        response = await turn(client, "Go")
        await small_model.script(Reply(text=("Next.",)), when="What next?")
        await turn(client, "What next?", previous_response_id=response["id"])
    *requests, next_turn = await small_model.requests()
    assert len(requests) == 12
    messages = messages_in(next_turn)
    called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(set(called)) == len(called) == 11
    assert [result["tool_call_id"] for result in tool_results(next_turn)] == called
    assert all(
        later["tool_call_id"] == earlier["tool_calls"][0]["id"]
        for earlier, later in pairwise(messages)
        if "tool_calls" in earlier
    )
    assert messages[-2] == {"role": "assistant", "content": "All I know."}
    assert (response["status"], text_of(response)) == ("completed", "All I know.")


async def test_our_tools_run_before_the_clients_and_results_stand_in_call_order(
    pair: Pair, model: FakeModelControl
) -> None:
    calls = (ScriptedCall(name="weather", call_id="call_theirs"), search("fox", "call_ours"))
    await model.script(Reply(tool_calls=calls), Reply(text=("Red and sunny.",)))
    async with bare_client(pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        asked = await turn(client, "Go", tools=[WEATHER, file_search(base_id)])
        assert [item["type"] for item in asked["output"]] == ["file_search_call", "function_call"]
        assert len(await model.requests()) == 1
        output = {"type": "function_call_output", "call_id": "call_theirs", "output": "sunny"}
        await turn(client, [output], previous_response_id=asked["id"])
    theirs, ours = messages_in((await model.requests())[-1])[-2:]
    assert (theirs["tool_call_id"], theirs["content"]) == ("call_theirs", "sunny")
    assert ours["tool_call_id"] == "call_ours"
    assert found_names(ours) == ["fox.md"]


async def test_the_operator_bounds_model_calls_and_a_backend_that_is_away_fails_the_search_only(
    small_pair: Pair, small_model: FakeModelControl, launch: Launch, tmp_path: Path
) -> None:
    away = {"CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{free_port()}", "CHAT_SHELL_MAX_MODEL_CALLS": "3"}
    lonely = lone_chat_shell(launch, tmp_path, small_pair, **away)
    await small_model.script(Reply(text=("Done.",)), when=FORCED_TO_ANSWER)
    await small_model.script(Reply(tool_calls=(search("fox"),), repeat=True))
    for limit, calls in ((None, 3), (2, 2)):
        limits = TurnLimits(max_knowledge_calls=10, max_model_calls=limit)
        told = await through_http(lonely, plain_request(knowledge=FULL, limits=limits))
        assert told.events[-1].type == "turn_finished"
        requests = await small_model.requests()
        assert len(requests) == calls
        assert {result["content"] for result in tool_results(requests[-1])[2:]} == {result_texts.TOOL_UNAVAILABLE}
        await small_model.reset()
        await small_model.script(Reply(text=("Done.",)), when=FORCED_TO_ANSWER)
        await small_model.script(Reply(tool_calls=(search("fox"),), repeat=True))


async def test_a_call_that_a_weak_model_writes_as_text_is_run_and_not_shown(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    written = (
        "<tool_",
        "call>\n",
        '{"name": "knowledge_base_search", ',
        '"arguments": {"query": "fox"}}',
        "\n</tool_call>",
    )
    await small_model.script(Reply(text=written), Reply(text=("Red.",)))
    async with bare_client(small_pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        response = await turn(client, "Who is red?", tools=[file_search(base_id)])
    called, result = messages_in((await small_model.requests())[-1])[-2:]
    assert called["tool_calls"][0]["function"] == {"name": "knowledge_base_search", "arguments": '{"query":"fox"}'}
    assert found_names(result) == ["fox.md"]
    assert [item["type"] for item in response["output"]] == ["file_search_call", "message"]
    assert text_of(response) == "Red."
