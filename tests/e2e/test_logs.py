"""Log lines that an operator follows a turn by, in both services."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

from tests.e2e.chat_shell_calls import plain_request, through_grpc
from tests.e2e.pair import Pair, lone_chat_shell
from tests.e2e.turns import Body, bare_client, file_search, new_base, turn
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.servers.services import Launch, RunningService, lines_of

SEARCH = ScriptedCall(name="knowledge_base_search", arguments='{"query": "fox"}')
IDS = ("request_id", "conversation_id", "turn_id", "trace_id")


async def accessed(service: RunningService, route: str, request_id: str) -> Body:
    """Return the access line of a request; it is written after the client has the answer, so it is waited for."""
    while True:
        for line in lines_of(service, request_id=request_id):
            if line["event"] == "HTTP request" and line["route"] == route:
                return line
        await asyncio.sleep(0.02)


async def finished(service: RunningService, request_id: str, turn_id: str) -> list[Body]:
    """Return the lines of a turn but for access lines; the last one is written after the client has the answer."""
    while True:
        found = lines_of(service, request_id=request_id, turn_id=turn_id)
        lines = [line for line in found if line["event"] != "HTTP request"]
        if any(line["event"] == "Turn finished" for line in lines):
            return lines
        await asyncio.sleep(0.02)


async def test_a_turn_can_be_followed_through_both_services(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(SEARCH,)), Reply(text=("Red.",)))
    request_id = f"req_{uuid.uuid4().hex}"
    async with bare_client(pair, "logs") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        client.headers["x-request-id"] = request_id
        response = await turn(client, "Who is red?", tools=[file_search(base_id)])
    expected = {
        "request_id": request_id,
        "conversation_id": response["conversation"]["id"],
        "turn_id": response["id"],
        "trace_id": request_id.removeprefix("req_"),
    }
    for service, events in (
        (pair.backend, ["Turn started", "Epoch started", "Knowledge searched", "Turn finished"]),
        (pair.chat_shell, ["Turn started", "Tool called", "Turn finished"]),
    ):
        lines = await finished(service, request_id, response["id"])
        assert [line["event"] for line in lines] == events
        for line in lines:
            assert {name: line.get(name) for name in IDS} == expected, line
        if service is pair.backend:
            assert expected.items() <= (await accessed(service, "/v1/responses", request_id)).items()
            await accessed(service, "/internal/v1/knowledge/search", request_id)
        assert "Who is red?" not in service.log()
        assert "The fox is red." not in service.log()


async def test_requests_and_answers_are_logged_whole_when_asked_for_and_no_byte_changes(
    small_pair: Pair, small_model: FakeModelControl, launch: Launch, tmp_path: Path
) -> None:
    talkative = lone_chat_shell(launch, tmp_path, small_pair, CHAT_SHELL_LOG_LLM_REQUESTS="1")
    request_id = f"req_{uuid.uuid4().hex}"
    request = plain_request(request_id=request_id)
    for one in (small_pair, talkative):
        await small_model.script(Reply(tool_calls=(ScriptedCall(name="more"),)), Reply(text=("Fi", "ne.")))
        await through_grpc(one, request)
    requests = await small_model.requests()
    assert [recorded.body for recorded in requests[:2]] == [recorded.body for recorded in requests[2:]]

    assert not lines_of(small_pair.chat_shell, event="LLM_REQUEST")
    assert not lines_of(small_pair.chat_shell, event="LLM_RESPONSE")
    sent = lines_of(talkative.chat_shell, event="LLM_REQUEST")
    assert [line["body"] for line in sent] == [recorded.json_body for recorded in requests[2:]]
    answers = lines_of(talkative.chat_shell, event="LLM_RESPONSE")
    assert [answer["text"] for answer in answers] == ["", "Fine."]
    assert [call_names(answer) for answer in answers] == [["more"], []]
    for line in (*sent, *answers):
        assert {name: line[name] for name in IDS} == {
            "request_id": request_id,
            "conversation_id": "conv_1",
            "turn_id": "resp_1",
            "trace_id": request_id.removeprefix("req_"),
        }
    log = talkative.chat_shell.log()
    assert "logged whole" in log.splitlines()[0]
    assert "credential-of-the-provider" not in log


def call_names(answer: Body) -> list[Any]:
    return [call["name"] for call in answer["tool_calls"]]
