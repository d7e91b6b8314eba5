"""Services killed in the middle of a turn: the turn ends in words, what was acknowledged is there."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.conftest import LARGE, Pairs
from tests.e2e.half_turns import HALF, half_a_turn
from tests.e2e.pair import Pair, lone_backend, start_pair, start_replica
from tests.e2e.turns import (
    Body,
    bare_client,
    events_of,
    file_search,
    items_of,
    messages_in,
    new_base,
    new_conversation,
    streamed_turn,
    text_of,
    turn,
    wire,
)
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

AWAY_EVENTS = {"database": "ok", "event_store": "away"}


@pytest.fixture(scope="module")
def mortal_pair(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A small pair whose services a test may kill, and starts again."""
    return start_pair(launch_for_module, tmp_path_factory.mktemp("mortal"))


@pytest.fixture
async def mortal_model(mortal_pair: Pair) -> AsyncIterator[FakeModelControl]:
    async with mortal_pair.fresh_model() as control:
        yield control


async def test_a_killed_backend_leaves_nothing_in_progress_and_loses_nothing(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    backend = mortal_pair.backend
    await mortal_model.script(Reply(text=("First.",)), HALF, Reply(text=("Third.",)))
    async with bare_client(mortal_pair, "survivor") as client:
        base_id = await new_base(client, "Cellar", wine="The wine is red.")
        conversation = await new_conversation(client)
        first = await turn(client, "One", conversation=conversation, tools=[file_search(base_id)])
        async with half_a_turn(client, conversation) as half:
            backend.kill()
            with pytest.raises(httpx2.TransportError):
                assert [event async for event in half.rest]
        await mortal_model.wait_closed()

        backend.start()
        await asyncio.to_thread(backend.wait_ready)
        lost = (await client.get(half.path)).json()
        replay = events_of((await client.get(f"{half.path}?stream=true")).text, is_whole=False)
        last_number = replay[-1]["sequence_number"]
        rest = (await client.get(f"{half.path}?stream=true&starting_after={last_number - 1}")).text
        assert (await client.post(f"{half.path}/cancel")).json() == lost
        third = await turn(client, "Three", conversation=conversation)
        items = await items_of(client, conversation)
        kept = (await client.get(f"/v1/responses/{first['id']}")).json()
        document = await client.get(f"/v1/knowledge_bases/{base_id}/documents/wine.md")
        hits = (await client.post(f"/v1/knowledge_bases/{base_id}/search", json={"query": "wine"})).json()

    assert (lost["status"], lost["completed_at"]) == ("incomplete", None)
    assert (lost["error"], lost["incomplete_details"]) == (None, None)
    assert (text_of(lost), lost["output"][0]["status"]) == ("Half an ", "incomplete")
    assert replay_types(replay) == ["response.created", "response.incomplete"]
    assert replay[0]["sequence_number"] == 0
    assert replay[-1]["response"] == lost
    assert events_of(rest) == replay[-1:]
    assert [item["content"][0]["text"] for item in items] == ["One", "First.", "Go on", "Half an ", "Three", "Third."]
    assert kept == first
    assert third["tools"] == first["tools"]
    assert document.text == "The wine is red."
    assert hits["data"][0]["document"] == "wine.md"
    one, two, three = await mortal_model.requests()
    assert messages_in(three)[3]["content"] == "First."
    for message in (messages_in(one)[-1], messages_in(two)[-1]):
        assert wire(message) in three.body


@pytest.mark.combination
async def test_an_item_whose_removal_was_cut_off_is_there_or_gone_and_its_conversation_goes_on(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    """Killed once before its transaction could begin, and once when it was stored and perhaps not yet answered."""
    backend = mortal_pair.backend
    await mortal_model.script(*(Reply(text=(text,)) for text in ("First.", "Second.", "Third.")))
    async with bare_client(mortal_pair, "survivor") as client:
        conversation = await new_conversation(client)
        for asked in ("One", "Two"):
            await turn(client, asked, conversation=conversation)
        path = f"/v1/conversations/{conversation}/items/{(await items_of(client, conversation))[-1]['id']}"
        with closing(sqlite3.connect(backend.spec.directory / "var/ballast.db", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            removing = asyncio.create_task(client.delete(path))
            assert (await client.get(path)).status_code == 200
            backend.kill()
            with pytest.raises(httpx2.TransportError):
                await removing
            database.execute("ROLLBACK")
            backend.start()
            await asyncio.to_thread(backend.wait_ready)
            assert (await client.get(path)).status_code == 200
            removing = asyncio.create_task(client.delete(path))
            while not database.execute("SELECT 1 FROM removed_item").fetchall():  # noqa: ASYNC110 -- another process
                await asyncio.sleep(0)
            backend.kill()
            await asyncio.gather(removing, return_exceptions=True)
        backend.start()
        await asyncio.to_thread(backend.wait_ready)
        assert (await client.delete(path)).status_code == 404
        await turn(client, "Three", conversation=conversation)
        items = await items_of(client, conversation)
    assert [item["content"][0]["text"] for item in items] == ["One", "First.", "Two", "Three", "Third."]
    _, two, three = await mortal_model.requests()
    assert messages_in(three)[:-1] == messages_in(two)


def replay_types(events: list[Body]) -> list[str]:
    return [event["type"] for event in events]


@pytest.mark.combination
async def test_the_end_of_a_lost_turn_is_heard_by_who_had_seen_more_than_was_kept(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    """While the test holds the database, no checkpoint keeps what goes on to the client."""
    backend = mortal_pair.backend
    pieces = tuple(f"{number} " for number in range(30))
    await mortal_model.script(HALF.model_copy(update={"text": ("Half ", "an ", *pieces), "pause_seconds": 0.03}))
    async with bare_client(mortal_pair, "survivor") as client:
        conversation = await new_conversation(client)
        with closing(sqlite3.connect(backend.spec.directory / "var/ballast.db", isolation_level=None)) as database:
            async with half_a_turn(client, conversation) as half:
                database.execute("BEGIN IMMEDIATE")
                ((kept_number,),) = database.execute(
                    "SELECT last_event FROM response WHERE id = ?", (half.path.rpartition("/")[2],)
                ).fetchall()
                await mortal_model.release()
                seen = kept_number
                while seen < kept_number + 5:
                    seen = (await anext(half.rest))["sequence_number"]
                backend.kill()
            database.execute("ROLLBACK")
        backend.start()
        await asyncio.to_thread(backend.wait_ready)
        (end,) = events_of((await client.get(f"{half.path}?stream=true&starting_after={seen}")).text)
        behind = (await client.get(f"{half.path}?stream=true&starting_after={end['sequence_number']}")).text
        stored = (await client.get(half.path)).json()
    assert (end["type"], end["response"]) == ("response.incomplete", stored)
    assert end["sequence_number"] > seen
    assert events_of(behind, is_whole=False) == []


@pytest.mark.combination
async def test_a_turn_that_died_before_its_first_word_runs_again_at_the_next_start(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    await mortal_model.script(Reply(text=("x",), hold_after=0), Reply(text=("Now.",)))
    async with bare_client(mortal_pair, "survivor") as client:
        conversation = await new_conversation(client)
        running = await turn(client, "Go", conversation=conversation, background=True)
        await mortal_model.wait_held()
        mortal_pair.backend.kill()
        mortal_pair.backend.start()
        await asyncio.to_thread(mortal_pair.backend.wait_ready)
        events = events_of((await client.get(f"/v1/responses/{running['id']}?stream=true")).text)
        stored = (await client.get(f"/v1/responses/{running['id']}")).json()
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    assert (events[-1]["response"], text_of(stored)) == (stored, "Now.")
    first, again = await mortal_model.requests()
    assert first.body == again.body


async def test_a_killed_chat_shell_fails_the_turn_and_is_reached_again(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    chat_shell = mortal_pair.chat_shell
    await mortal_model.script(HALF, Reply(text=("Back.",)))
    async with bare_client(mortal_pair, "survivor") as client:
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half:
            chat_shell.kill()
            rest = [event async for event in half.rest]
        error, failed = rest[-2:]
        assert error["error"]["type"] == "ChatShellUnavailable"
        assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
        assert text_of(failed["response"]) == "Half an "
        assert (await client.get(half.path)).json() == failed["response"]

        await refused_while_away(client, conversation)
        before = await items_of(client, conversation)
        assert [item["role"] for item in before[:2]] == ["user", "assistant"]

        chat_shell.start()
        await asyncio.to_thread(chat_shell.wait_ready)
        while (await client.get("/v1/models")).status_code != 200:
            continue
        back = await turn(client, "Back?", conversation=conversation)
    assert text_of(back) == "Back."
    sent = messages_in((await mortal_model.requests())[-1])
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]


async def refused_while_away(client: httpx2.AsyncClient, conversation: str) -> None:
    """Ask while chat_shell is down: refused before the turn begins, or failed in it; typed either way."""
    streamed = await client.post("/v1/responses", json={"input": "?", "stream": True, "conversation": conversation})
    if streamed.status_code == 200:
        failed = events_of(streamed.text)[-1]["response"]
        assert (failed["status"], failed["error"]["type"]) == ("failed", "ChatShellUnavailable")
    else:
        assert streamed.status_code == 503
    plain = await client.post("/v1/responses", json={"input": "?", "conversation": conversation})
    assert plain.status_code == 503
    assert (plain.json()["error"]["type"], plain.json()["error"]["code"]) == ("server_error", "server_error")


async def test_nothing_is_stored_of_a_turn_for_which_chat_shell_was_never_there(launch: Launch, tmp_path: Path) -> None:
    async with bare_client(lone_backend(launch, tmp_path), "survivor") as client:
        conversation = await new_conversation(client)
        answer = await client.post("/v1/responses", json={"input": "?", "conversation": conversation})
        assert answer.status_code == 503
        assert "x-should-retry" not in answer.headers
        assert await items_of(client, conversation) == []


@pytest.fixture
def fragile_valkey(valkey_server: ValkeyServer) -> Iterator[ValkeyServer]:
    """The Valkey behind the large pair; running when the test ends."""
    yield valkey_server
    valkey_server.restart()


@pytest.fixture
def fragile_postgres(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """The PostgreSQL behind the large pair; running when the test ends."""
    yield postgres_server
    postgres_server.restart()


@pytest.fixture
async def large_model(pairs: Pairs) -> AsyncIterator[FakeModelControl]:
    async with pairs.get(LARGE).fresh_model() as control:
        yield control


@pytest.mark.combination
async def test_a_killed_valkey_costs_at_most_the_turn(
    pairs: Pairs, large_model: FakeModelControl, fragile_valkey: ValkeyServer
) -> None:
    await large_model.script(HALF, Reply(text=("Next.",)))
    async with bare_client(pairs.get(LARGE), "survivor") as client:
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half:
            fragile_valkey.kill()
            fragile_valkey.start()
            await large_model.release()
            rest = [event async for event in half.rest]
        stored = (await client.get(half.path)).json()
        after = await turn(client, "Next", conversation=conversation)
    assert rest[-1]["response"] == stored
    assert (stored["status"], text_of(stored)) == ("completed", "Half an answer")
    assert after["status"] == "completed"


@pytest.mark.combination
async def test_while_valkey_is_away_new_turns_are_refused_and_the_rest_goes_on(
    pairs: Pairs, large_model: FakeModelControl, fragile_valkey: ValkeyServer
) -> None:
    await large_model.script(Reply(text=("First.",)), Reply(text=("Second.",)))
    async with bare_client(pairs.get(LARGE), "survivor") as client:
        conversation = await new_conversation(client)
        first = await turn(client, "One", conversation=conversation)
        fragile_valkey.kill()
        while (await client.get("/readyz")).json() != {"status": "ok", "components": AWAY_EVENTS}:
            continue
        for fields in ({}, {"stream": True}, {"background": True}):
            refused = await client.post("/v1/responses", json={"input": "?", "conversation": conversation, **fields})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["error"]["message"].startswith("The event store")
            assert "x-should-retry" not in refused.headers
        assert (await client.get(f"/v1/responses/{first['id']}")).json() == first
        assert len(await items_of(client, conversation)) == 2
        fragile_valkey.start()
        while (await client.get("/readyz")).json()["components"] == AWAY_EVENTS:
            continue
        assert text_of(await turn(client, "Two", conversation=conversation)) == "Second."


async def test_a_killed_postgres_is_waited_for(
    pairs: Pairs, large_model: FakeModelControl, fragile_postgres: PostgresServer
) -> None:
    await large_model.script(HALF, Reply(text=("Next.",)))
    async with bare_client(pairs.get(LARGE), "survivor") as client:
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half:
            fragile_postgres.kill()
            await large_model.release()
            fragile_postgres.start()
            rest = [event async for event in half.rest]
        stored = (await client.get(half.path)).json()
        after = await streamed_turn(client, "Next", conversation=conversation)
        items = await items_of(client, conversation)
    assert rest[-1] == {**rest[-1], "type": "response.completed", "response": stored}
    assert after[-1]["type"] == "response.completed"
    assert [item["content"][0]["text"] for item in items] == ["Go on", "Half an answer", "Next", "Next."]


@pytest.mark.combination
async def test_a_living_replica_ends_the_turn_of_a_killed_one(
    pairs: Pairs, large_model: FakeModelControl, launch: Launch, tmp_path: Path
) -> None:
    """Within seconds, and whoever follows the stream there sees its end."""
    large = pairs.get(LARGE)
    doomed = start_replica(launch, tmp_path, large)
    await large_model.script(HALF, Reply(text=("Next.",)))
    async with bare_client(large, "survivor") as here, bare_client(doomed, "survivor") as there:
        conversation = await new_conversation(here)
        async with half_a_turn(there, conversation) as half:
            doomed.backend.kill()
        followed = events_of((await here.get(f"{half.path}?stream=true")).text)
        after = await turn(here, "Next", conversation=conversation)
    last = followed[-1]
    assert (last["type"], last["response"]["error"]) == ("response.incomplete", None)
    assert text_of(last["response"]) == "Half an "
    assert after["status"] == "completed"
