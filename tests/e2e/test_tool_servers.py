"""Turns with real tool servers, over HTTP and as children: honest ones, and ones that do what they like.

Whatever a server does, the turn ends well, and no byte moves that the model was sent before.
"""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import yaml

from shared.prompts import tool_servers as texts
from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.prefixes import check_never_moves, check_pairs
from tests.e2e.turns import Body, bare_client, messages_in, streamed_turn, text_of, tool_results, turn
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.fakes.openai_types import check_event
from tests.servers.ports import accepts_connections, free_port
from tests.servers.services import ROOT, RunningService

pytestmark = pytest.mark.combination

WEB: Body = {"type": "mcp", "server_label": "web"}
LOCAL: Body = {"type": "mcp", "server_label": "local"}


@dataclass
class House:
    """A pair with two tool servers, one behind an address and one as a child, and one skill."""

    pair: Pair
    model: FakeModelControl
    listing: Path
    web: RunningService
    client: httpx2.AsyncClient

    async def call(self, server: str, tool: str, said: str = "hi", **fields: Any) -> tuple[Body, str]:
        """Run a turn whose model calls a tool; return the response, and the result as the model read it."""
        before = len(await self.model.requests())
        call = ScriptedCall(name=f"{server}__{tool}", arguments=orjson.dumps({"text": said}).decode())
        await self.model.script(Reply(tool_calls=(call,)), Reply(text=("Done.",)))
        response = await turn(self.client, f"Call {tool}.", **fields)
        last = (await self.model.requests())[before + 1]
        check_pairs(messages_in(last))
        assert (response["status"], text_of(response)) == ("completed", "Done.")
        return response, tool_results(last)[-1]["content"]


def tools_file(directory: Path, port: int, listing: Path) -> Path:
    skill = directory / "skills" / "letters"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: letters\ndescription: Write letters.\n---\nBegin with Dear.")
    web = {"name": "web", "address": f"http://127.0.0.1:{port}/mcp", "headers": {"x-key": "KEY_OF_WEB"}}
    local = {
        "name": "local",
        "command": sys.executable,
        "arguments": ["-m", "tests.servers.tool_server", "stdio", str(listing)],
        "environment": ["PYTHONPATH"],
    }
    limits = {"timeout_seconds": 3, "max_result_bytes": 2000}
    path = directory / "tools.yaml"
    content = {"servers": [{**web, **limits}, {**local, **limits}], "skills": {"folder": str(directory / "skills")}}
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
async def house(pairs: Pairs, tmp_path: Path) -> AsyncIterator[House]:
    listing = tmp_path / "listing"
    listing.write_text("usual")
    port = free_port()
    settings = {"KEY": "k", "PYTHONPATH": str(ROOT)}
    arguments = ("http", str(port), str(listing))
    web = pairs.launch("tests.servers.tool_server", *arguments, settings=settings, ready_url="", directory=tmp_path)
    web.wait_until(lambda: accepts_connections(port), 60)
    variables = {"CHAT_SHELL_TOOLS_FILE": str(tools_file(tmp_path, port, listing)), "KEY_OF_WEB": "k"}
    pair = start_pair(pairs.launch, tmp_path / "pair", PairOptions(chat_shell=variables))
    async with pair.control() as model, bare_client(pair, "tools") as client:
        made = House(pair, model, listing, web, client)
        await known(made)
        await model.reset()
        yield made
    for service in (pair.backend, pair.chat_shell, pair.model_server, web):
        service.kill()


async def known(house: House) -> None:
    """Return when chat_shell knows the tools of both servers: a child takes seconds to start."""
    url, token = f"{house.pair.chat_shell_http_url}/v1/tools", house.pair.chat_shell.spec.environment["SERVICE_TOKEN"]
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, trust_env=False, verify=False
    ) as client:
        for _ in range(20):
            # Each call waits up to three seconds for servers that have not been asked yet.
            servers = (await client.get(url, timeout=30)).json()["servers"]
            if all(server["is_known"] for server in servers):
                return
    raise AssertionError("a tool server was never known")


async def test_hostile_servers_end_no_turn_and_move_no_byte(house: House) -> None:
    first, echoed = await house.call("web", "echo", "Hello.", tools=[WEB, LOCAL])
    assert echoed == texts.frame_result("web", "Hello.")
    item = first["output"][0]
    assert (item["type"], item["server_label"], item["name"]) == ("mcp_call", "web", "echo")
    assert (item["arguments"], item["output"], item["error"]) == ('{"text":"Hello."}', echoed, None)

    house.listing.write_text("changed")
    _, gone = await house.call("web", "broken", previous_response_id=first["id"])
    assert gone == texts.frame_result("web", "Unknown tool: broken")
    house.listing.write_text("usual")

    last: Body = first
    for server, tool, words in [
        ("local", "echo", texts.frame_result("local", "hi")),
        ("web", "binary", texts.frame_result("web", "a picture:\n[image/png, 10 bytes, not shown]")),
        ("web", "long", None),
        ("web", "hang", texts.SERVER_TOO_SLOW),
        ("local", "hang", texts.SERVER_TOO_SLOW),
        ("web", "huge", None),
        ("local", "huge", None),  # it may take longer to write so much than a call may last
        ("local", "die", None),
        ("web", "echo", texts.frame_result("web", "hi")),
        ("web", "die", None),
        ("web", "echo", texts.SERVER_AWAY),
    ]:
        last, result = await house.call(server, tool, conversation=first["conversation"]["id"])
        assert words is None or result == words, (server, tool)
        assert tool != "huge" or result in (texts.RESULT_TOO_LARGE, texts.SERVER_TOO_SLOW)
        assert len(result.encode()) < 2500

    check_never_moves(await house.model.requests())
    assert last["output"][0]["status"] == "failed"


async def test_a_hostile_list_is_offered_in_its_legal_part(house: House) -> None:
    house.listing.write_text("hostile")
    house.web.kill()
    answer = await house.client.post("/v1/responses", json={"input": "x", "tools": [{**WEB, "allowed_tools": ["rm"]}]})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tools[0].allowed_tools[0]"
    answer = await house.client.post("/v1/responses", json={"input": "x", "tools": [{**WEB, "server_label": "no"}]})
    assert "'local', 'web'" in answer.json()["error"]["message"]


async def test_events_of_a_call_are_openais(house: House) -> None:
    call = ScriptedCall(name="web__echo", arguments='{"text": "x"}')
    await house.model.script(Reply(tool_calls=(call,)), Reply(text=("Done.",)))
    events = await streamed_turn(house.client, "Go", tools=[WEB])
    for event in events:
        check_event(orjson.dumps(event), open_responses=False)
    assert "response.mcp_call.completed" in [event["type"] for event in events]


async def test_an_agent_reads_its_skill(house: House) -> None:
    definition = {"model": None, "instructions": "Be brief.", "skills": ["letters"], "tools": [WEB]}
    made = await house.client.put("/v1/agents/writer", json=definition)
    assert made.status_code in (200, 201), made.text
    refused = await house.client.put("/v1/agents/other", json={**definition, "skills": ["poems"]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "skills[0]")
    function = {"type": "function", "name": "web__echo"}
    refused = await house.client.put("/v1/agents/other", json={**definition, "tools": [WEB, function]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools")
    read = ScriptedCall(name="read_skill", arguments='{"name": "letters"}')
    await house.model.script(Reply(tool_calls=(read,)), Reply(text=("Dear Ann.",)), Reply(text=("Yours.",)))
    first = await turn(house.client, "Write.", model="writer")
    await turn(house.client, "More.", previous_response_id=first["id"])
    requests = await house.model.requests()
    assert "- letters: Write letters." in messages_in(requests[0])[1]["content"]
    assert tool_results(requests[1])[0]["content"].endswith("Begin with Dear.")
    check_never_moves(requests)
