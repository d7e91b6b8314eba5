"""Where an agent's words stand in what reaches the model, through both services."""

import pytest

from shared.prompts.message_order import TOOL_RESULT_ELIDED
from tests.e2e.pair import Pair
from tests.e2e.turns import Body, asked, bare_client, new_base, turn, upload
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall

pytestmark = pytest.mark.combination

WORDS = "Custom words."


def search(call_id: str) -> Reply:
    call = ScriptedCall(call_id=call_id, name="knowledge_base_search", arguments='{"query": "cooling"}')
    return Reply(tool_calls=(call,))


def letters(request: RecordedRequest) -> str:
    """Write the messages of a request as letters."""
    return " ".join(_letter(message) for message in request.json_body["messages"])


def _letter(message: Body) -> str:
    given = message.get("content") or ""
    content = str(given if isinstance(given, str) else given[0]["text"])
    match message["role"]:
        case "system":
            return "S"
        case "assistant":
            return "TC" if message.get("tool_calls") else content
        case "tool":
            return "tr" if content == TOOL_RESULT_ELIDED else "TR"
        case _ if content == WORDS:
            return "CA"
        case _ if content.startswith("These files belong to the assistant"):
            return "P"
        case _ if content.startswith('<file id="'):
            return "F"
        case _ if content.startswith("<system-reminder>"):
            return "R"
        case _:
            return "K" if content.startswith("Knowledge bases") else content.partition("\n")[0]


FLOWS = {
    "classic": [
        "S CA K U1",
        "S CA K U1 TC TR R",
        "S K U1 TC tr A1 CA U2",
        "S K U1 TC tr A1 U2 A2 CA U3",
        "S K U1 TC tr A1 U2 A2 CA U3 TC TR R",
    ],
    "anchored": [
        "S CA K U1",
        "S CA K U1 TC TR R",
        "S CA K U1 TC TR R A1 U2",
        "S CA K U1 TC TR R A1 U2 A2 U3",
        "S CA K U1 TC TR R A1 U2 A2 U3 TC TR",
    ],
}


@pytest.mark.parametrize("placement", FLOWS)
async def test_the_flow_of_an_agent_that_searches_in_its_first_and_third_turn(
    pair: Pair, model: FakeModelControl, placement: str
) -> None:
    answers = [Reply(text=(f"A{number}",)) for number in (1, 2, 3)]
    await model.script(search("c1"), answers[0], answers[1], search("c3"), answers[2])
    async with bare_client(pair, "placement") as client:
        base_id = await new_base(client, "Turbines", cooling="Turbines are cooled by air.")
        agent = {"instructions": WORDS, "placement": placement, "knowledge_base_ids": [base_id]}
        assert (await client.put(f"/v1/agents/{placement}", json=agent)).is_success
        last = await turn(client, "U1", model=placement)
        for number in (2, 3):
            last = await turn(client, f"U{number}", previous_response_id=last["id"])
        shown = (await client.get(f"/v1/responses/{last['id']}/prompts")).json()["data"]
    assert [letters(request) for request in await model.requests()] == FLOWS[placement]
    assert {call["placement"] for call in shown} == {placement}
    assert [call["first_difference"] for call in shown] == [None, None]
    assert (shown[0]["rewritten_tokens"] > 0) is (placement == "classic")


FLOWS_WITH_FILES = {
    "classic": ["S CA P F U1", "S F U1 A1 CA P U2", "S F U1 A1 U2 A2 CA P F U3"],
    "anchored": ["S CA P F U1", "S CA P F U1 A1 U2", "S CA P F U1 A1 U2 A2 F U3"],
}


@pytest.mark.parametrize("placement", FLOWS_WITH_FILES)
async def test_the_flow_of_an_agent_with_project_files_and_an_upload(
    pair: Pair, model: FakeModelControl, placement: str
) -> None:
    await model.script(*(Reply(text=(f"A{number}",)) for number in (1, 2, 3)))
    async with bare_client(pair, "projects") as client:
        project, *uploads = [
            await upload(client, name, f"About {name}.") for name in ("project.md", "first.md", "third.md")
        ]
        agent = {"instructions": WORDS, "placement": placement, "file_ids": [project]}
        assert (await client.put(f"/v1/agents/with-files-{placement}", json=agent)).is_success
        first = await turn(client, asked("U1", uploads[0]), model=f"with-files-{placement}")
        second = await turn(client, "U2", previous_response_id=first["id"])
        last = await turn(client, asked("U3", uploads[1]), previous_response_id=second["id"])
        shown = [(await client.get(f"/v1/responses/{each['id']}/prompts")).json()["data"][0] for each in (second, last)]
    assert [letters(request) for request in await model.requests()] == FLOWS_WITH_FILES[placement]
    assert [call["first_difference"] for call in shown] == [None, None]
    assert [call["rewritten_tokens"] > 0 for call in shown] == [placement == "classic"] * 2
