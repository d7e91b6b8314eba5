"""Files of messages and of agents, through both services, as the model gets them."""

import re
from base64 import b64encode
from pathlib import Path

import orjson
import pytest

from tests.e2e.client.knowledge_bases import messages_of, offered, searches, set_role, tool_texts
from tests.e2e.client.knowledge_bases import new_base as base_of_ann
from tests.e2e.pair import Pair, start_pair
from tests.e2e.stored_rows import count_rows
from tests.e2e.turns import asked, bare_client, put_agent, turn, upload
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

LINES = [f"Barrel {number} holds the wine of year {number % 97}." for number in range(10_000)]
LINES[7_000] = "The zinfandel of the abbess lies in the deepest cellar."
LONG = "\n\n".join(LINES)
"""About 115,000 tokens; the window of the fake model has 128,000."""

RIVERS = "# Rivers\n\nThe Rhine rises in the Alps."


def reads(file_id: str, offset: int = 0) -> Reply:
    arguments = orjson.dumps({"file_id": file_id, "offset": offset}).decode()
    return Reply(tool_calls=(ScriptedCall(name="read_file", arguments=arguments),))


async def test_a_file_stays_above_its_message_in_later_turns(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Alps.",)), Reply(text=("Yes.",)))
    async with bare_client(pair, "fay") as client:
        file_id = await upload(client, "rivers.md", RIVERS)
        first = await turn(client, asked("Where does it rise?", file_id))
        assert (await client.delete(f"/v1/files/{file_id}")).status_code == 200
        await turn(client, "Sure?", previous_response_id=first["id"])
        one, two = [messages_of(request) for request in await model.requests()]
        assert [message["role"] for message in one] == ["system", "user", "user"]
        assert RIVERS in one[1]["content"]
        assert f'name="rivers.md" file_id="{file_id}"' in one[1]["content"]
        assert two[: len(one)] == one
        items = (await client.get(f"/v1/responses/{first['id']}/input_items")).json()["data"]
        assert items[0]["content"][0] == {"type": "input_file", "file_id": file_id}


async def test_a_file_too_long_is_listed_and_read_in_pages(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "fay") as client, bare_client(pair, "eve") as thief:
        file_id, other = await upload(client, "cellar.txt", LONG), await upload(thief, "secret.txt", "Not yours.")
        await model.script(
            Reply(text=("Hello.",)), reads(file_id), reads(file_id, 12_800), reads(other), Reply(text=("In it [2].",))
        )
        first = await turn(client, "Hello")
        done = await turn(client, asked("Where is the zinfandel?", file_id), previous_response_id=first["id"])
        plain, *requests = await model.requests()
        assert "read_file" not in offered(plain)
        assert all("read_file" in offered(request) for request in requests)
        listing = messages_of(requests[0])[-2]["content"]
        assert "Barrel 1 " not in listing
        assert f'file_id="{file_id}"' in listing
        pages = [orjson.loads(text)["documents"][0] for text in tool_texts(requests[-1])[:2]]
        assert [page["document"] for page in pages] == [1, 2]
        assert pages[0]["content"] + pages[1]["content"] == LONG[: pages[1]["next_offset"]]
        assert pages[0]["next_offset"] == pages[1]["offset"] == 12_800
        assert "Not yours" not in tool_texts(requests[-1])[2]
        (note,) = done["output"][-1]["content"][0]["annotations"]
        assert (note["type"], note["file_id"], note["filename"]) == ("file_citation", file_id, "cellar.txt")
        shown = (await client.get(f"/v1/responses/{done['id']}/prompts")).json()
        assert shown["data"][0]["epoch_reason"] == "tools_changed"


async def test_a_file_that_cannot_fit_is_refused_with_the_figures(pair: Pair) -> None:
    part = {"type": "input_file", "filename": "cellar.txt", "file_data": b64encode(LONG.encode()).decode()}
    body = {"input": [{"role": "user", "content": [part]}], "instructions": "Be brief. " * 38_000}
    async with bare_client(pair, "fay") as client:
        refused = await client.post("/v1/responses", json=body)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (400, "context_length_exceeded")
        assert error["param"] == "input[0].content[0].file_data"
        figures = r"about \d+ tokens are needed, \d+ of the model's window of 128000 are available"
        assert re.search(figures, error["message"])


async def test_in_a_restricted_turn_the_users_own_file_is_read_and_is_no_word_of_theirs(
    pair: Pair, model: FakeModelControl
) -> None:
    base = base_of_ann(pair, "vault", {"vault.md": "The vault opens at nine."})
    set_role(pair, base.id, "rex", "restricted_analyst")
    async with bare_client(pair, "rex") as client:
        file_id = await upload(client, "cellar.txt", LONG)
        await model.script(reads(file_id), Reply(text=("Fine.",)))
        done = await turn(client, asked("Well?", file_id), tools=[base.tool])
        assert done["status"] == "completed"
        requests = await model.requests()
        assert [name for name in offered(requests[0]) if "read" in name] == ["read_file"]
        assert "Barrel 1 holds" in tool_texts(requests[1])[0]


async def test_the_files_of_an_agent_stand_once_and_are_cited(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("In the Alps [1].",)), Reply(text=("Yes [1].",)))
    async with bare_client(pair, "fay") as client, bare_client(pair, "eve") as other:
        file_id = await upload(client, "rivers.md", RIVERS)
        await put_agent(client, "rivers", file_ids=[file_id], visibility="tenant")
        first = await turn(client, "Where?", model="rivers")
        (note,) = first["output"][-1]["content"][0]["annotations"]
        assert (note["type"], note["file_id"], note["filename"]) == ("file_citation", file_id, "rivers.md")
        await turn(client, "Sure?", model="rivers", previous_response_id=first["id"])
        one, two = [messages_of(request) for request in await model.requests()]
        assert one[-2]["content"].split("\n")[1].startswith('{"documents": [{"document": 1, "title": "rivers.md"')
        assert two[: len(one)] == one
        assert str(two).count("The Rhine rises") == 1
        refused = await other.put("/v1/agents/thief", json={"file_ids": [file_id]})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "file_ids[0]")


async def test_the_files_of_an_agent_are_searched_where_they_are_too_long(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "fay") as client, bare_client(pair, "eve") as other:
        file_id, small = await upload(client, "cellar.txt", LONG), await upload(client, "rivers.md", RIVERS)
        await put_agent(client, "cellar", file_ids=[file_id, small], visibility="tenant")
        for asker in (client, other):
            await model.script(searches("zinfandel abbess"), Reply(text=("Deep [1].",)))
            done = await turn(asker, "Where is the zinfandel?", model="cellar")
            first, second = (await model.requests())[-2:]
            listing = messages_of(first)[-2]["content"]
            assert [file["file_id"] for file in orjson.loads(listing.split("\n")[1])["files"]] == [file_id, small]
            found = orjson.loads(tool_texts(second)[0])["documents"]
            assert any(LINES[7_000] in document["content"] for document in found)
            assert {document["file_id"] for document in found} <= {file_id, small}
            (note,) = done["output"][-1]["content"][0]["annotations"]
            assert note["type"] == "file_citation"
        listed = (await other.get("/v1/vector_stores")).json()["data"]
        assert not [store for store in listed if store["id"].startswith("shelf_")]
        assert (await other.get(f"/v1/knowledge_bases/shelf_{'0' * 32}")).status_code == 404


async def test_a_file_whose_reader_is_killed_is_read_after_the_restart(launch: Launch, tmp_path: Path) -> None:
    pair = start_pair(launch, tmp_path)
    async with bare_client(pair, "survivor") as client:
        file_id = await upload(client, "cellar.txt", LONG * 4)
        await put_agent(client, "cellar", file_ids=[file_id])
        pair.backend.kill()
        pair.backend.start()
        pair.backend.wait_ready()

        while not count_rows(tmp_path / "var" / "ballast.db", "document"):
            continue
        while count_rows(tmp_path / "var" / "ballast.db", "attachment"):
            continue
