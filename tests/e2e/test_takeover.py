"""A replica that dies, freezes or leaves: another one continues its turns, and clients miss nothing of them."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import asyncpg
import httpx2
import pytest

from tests.e2e.half_turns import held_calls
from tests.e2e.pair import Pair, PairOptions, start_pair, start_replica
from tests.e2e.prefixes import check_never_moves, check_pairs
from tests.e2e.turns import (
    Body,
    bare_client,
    events_of,
    file_search,
    live_events,
    messages_in,
    new_base,
    new_conversation,
    text_of,
    turn,
)
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch, lines_of
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.combination

LEASE_SECONDS = 2
SEARCH = ScriptedCall(name="knowledge_base_search", arguments='{"query": "wine"}', call_id="call_1")
TOOLS = (
    Reply(tool_calls=(ScriptedCall(name="no_such_tool", call_id="call_1"),)),
    Reply(text=("Let me see. ",), tool_calls=(ScriptedCall(name="no_such_tool", call_id="call_2"),)),
)
HELD = Reply(text=("x",), hold_after=0)
ANSWER = Reply(text=("So ", "it ", "is."))
HALF = Reply(text=("So ", "it ", "is."), hold_after=2)


@dataclass
class Point:
    """A place in a turn at which its process is killed: how the model gets there, and what comes of the turn."""

    name: str
    script: tuple[Reply, ...]
    reached: str = "response.in_progress"
    said: str = ""
    goes_on: bool = False
    calls: int = 1
    seen: list[Body] = field(default_factory=list[Body])

    @property
    def asked(self) -> str:
        return f"Killed {self.name}?"

    @property
    def path(self) -> str:
        return f"/v1/responses/{self.seen[0]['response']['id']}"

    @property
    def conversation(self) -> str:
        return self.seen[0]["response"]["conversation"]["id"]

    async def replies(self, model: FakeModelControl) -> None:
        await model.script(*self.script, *[ANSWER] * self.goes_on, Reply(text=("Next.",)), when=self.asked)

    async def follow(self, events: AsyncIterator[Body]) -> None:
        """Read what comes until the process dies."""
        with suppress(httpx2.TransportError):
            async for event in events:
                self.seen.append(event)

    @property
    def is_reached(self) -> bool:
        deltas = "".join(event["delta"] for event in self.seen if event["type"].endswith("text.delta"))
        types = [event["type"] for event in self.seen]
        return self.reached in types and deltas == self.said


DELTA, REASONED = "response.output_text.delta", "response.reasoning_text.delta"
FINISHING = Point("while it finishes", (Reply(text=("So ", "it ", "is."), hold_after=3),), DELTA, "So it is.")
POINTS = [
    FINISHING,
    Point("before the model answers", (HELD,), goes_on=True),
    Point("after reasoning", (Reply(reasoning=("Hm",), text=("x",), hold_after=1),), REASONED, "Hm"),
    Point("after the first delta", (Reply(text=("So ", "it"), hold_after=1),), DELTA, "So "),
    Point("in the middle", (HALF,), DELTA, "So it "),
    Point("after a refusal", (Reply(refusal=("No", "pe"), hold_after=1),), "response.refusal.delta"),
    Point("during a tool", (Reply(tool_calls=(SEARCH,)),), "response.file_search_call.searching"),
    Point("before the second call", (TOOLS[0], HELD), goes_on=True, calls=2),
    Point("in the second call", (TOOLS[0], HALF), DELTA, "So it "),
    Point("between a text and a call", (TOOLS[1], HELD), "response.output_item.done", "Let me see. ", True, 2),
    Point("before the third call", (*TOOLS, HELD), "response.output_item.done", "Let me see. ", True, 3),
]  # fmt: skip
UNSENT = Point("before it is sent", (ANSWER,), goes_on=True)
"""The chat_shell that thaws may ask the model before it notices that its caller is gone."""


@dataclass
class Cluster:
    """Two replicas over one PostgreSQL and one Valkey; chat_shell looks for searches at a port of the test's own."""

    survivor: Pair
    doomed: Pair
    tool_port: int
    database: str

    async def restarted(self) -> None:
        """Start the replica again that an earlier test has killed."""
        if self.doomed.backend.exit_code is not None:
            self.doomed.backend.start()
            await asyncio.to_thread(self.doomed.backend.wait_ready)

    @asynccontextmanager
    async def held_end(self, response_id: str) -> AsyncGenerator[None]:
        """Let nobody store the end of a turn in the meantime."""
        connection = await cast(Any, asyncpg).connect(self.database)
        try:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM response WHERE id = $1 FOR UPDATE", response_id)
                yield
        finally:
            await connection.close()


@pytest.fixture(scope="module")
def cluster(
    launch_for_module: Launch,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> Cluster:
    directory = tmp_path_factory.mktemp("cluster")
    name = postgres_server.new_database()
    settings = {
        "BACKEND_DATABASE_URL": postgres_server.url(name),
        "BACKEND_REDIS_URL": valkey_server.url,
        "BACKEND_TURN_LEASE_SECONDS": str(LEASE_SECONDS),
    }
    port = free_port()
    options = PairOptions(backend=settings, chat_shell={"CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{port}"})
    survivor = start_pair(launch_for_module, directory / "survivor", options)
    doomed = start_replica(launch_for_module, directory / "doomed", survivor, BACKEND_DRAIN_SECONDS="1")
    return Cluster(survivor, doomed, port, postgres_server.url(name, driver=""))


@pytest.fixture
async def model(cluster: Cluster) -> AsyncIterator[FakeModelControl]:
    async with cluster.survivor.fresh_model() as control:
        yield control


async def until_reached(points: list[Point]) -> None:
    while not all(point.is_reached for point in points):  # noqa: ASYNC110 -- the readers have nothing to wait for
        await asyncio.sleep(0.02)


def requests_of(point: Point, requests: list[RecordedRequest]) -> list[RecordedRequest]:
    return [request for request in requests if point.asked.encode() in request.body]


async def test_a_killed_replica_leaves_each_turn_to_another_one(cluster: Cluster, model: FakeModelControl) -> None:
    """Killed once, with a turn at each point."""
    points = [*POINTS, UNSENT]
    for point in points:
        await point.replies(model)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(bare_client(cluster.survivor, "ann"))
        there = await stack.enter_async_context(bare_client(cluster.doomed, "ann"))
        arrived = await stack.enter_async_context(held_calls(cluster.tool_port))
        bound = {"tools": [file_search(await new_base(here, "Cellar", wine="The wine is red."))]}
        following: list[asyncio.Task[None]] = []
        for point in POINTS:
            body = {"input": point.asked, "stream": True, "conversation": await new_conversation(there), **bound}
            answer = await stack.enter_async_context(there.stream("POST", "/v1/responses", json=body))
            following.append(asyncio.create_task(point.follow(live_events(answer))))
            if point is FINISHING:  # of several held answers the first one is released first
                await model.wait_held()
        await arrived.wait()
        await model.wait_held(sum(reply.hold_after is not None for point in POINTS for reply in point.script))
        await until_reached(POINTS)
        chat_shell = cluster.doomed.chat_shell
        async with cluster.held_end(FINISHING.seen[0]["response"]["id"]):
            await model.release()
            while FINISHING.seen[-1]["type"] != "response.output_item.done":  # noqa: ASYNC110 -- as above
                await asyncio.sleep(0.02)
            chat_shell.send(signal.SIGSTOP)
            unsent = await turn(there, UNSENT.asked, background=True)
            cluster.doomed.backend.kill()
            chat_shell.send(signal.SIGCONT)
        await asyncio.wait(following)
        UNSENT.seen.append({"response": unsent, "sequence_number": -1})
        rests = await asyncio.gather(*(rest_of(here, point) for point in points))
        nexts = await asyncio.gather(*(turn(here, "Next?", conversation=point.conversation) for point in points))
        stored = [(await here.get(point.path)).json() for point in points]
    requests = await model.requests()
    for point, rest, response, after in zip(points, rests, stored, nexts, strict=True):
        check_point(point, rest, response, requests_of(point, requests))
        assert after["status"] == "completed"
    assert not lines_of(cluster.survivor.backend, event="Prompt drift")
    taken = lines_of(cluster.survivor.backend, event="Turn taken over")
    assert sorted(line["outcome"] for line in taken) == sorted(
        "run_again" if point.goes_on else "incomplete"
        for point, response in zip(points, stored, strict=True)
        if point is not FINISHING or response["status"] == "incomplete"
    )


async def rest_of(client: httpx2.AsyncClient, point: Point) -> list[Body]:
    after = point.seen[-1]["sequence_number"]
    query = f"&starting_after={after}" if after >= 0 else ""
    return events_of((await client.get(f"{point.path}?stream=true{query}")).text)


def check_point(point: Point, rest: list[Body], stored: Body, requests: list[RecordedRequest]) -> None:
    events = [*(event for event in point.seen if event["sequence_number"] >= 0), *rest]
    assert [event["sequence_number"] for event in events] == list(range(len(events))), point.name
    assert events[-1]["response"] == stored
    texts = "".join(event["delta"] for event in events if event["type"] == DELTA)
    assert text_of(stored) == texts, point.name
    if point.goes_on:
        assert stored["status"] == "completed", point.name
        assert texts.endswith("So it is.")
        last, again = requests[point.calls - 1 : point.calls + 1] if point is not UNSENT else (requests[0], requests[0])
        assert last.body == again.body, point.name
    else:
        # a statement that has reached the database ends a turn, though the process that sent it dies
        ends = ("completed", "incomplete") if point is FINISHING else ("incomplete",)
        assert stored["status"] in ends, point.name
        assert (stored["incomplete_details"], stored["error"]) == (None, None), point.name
    check_pairs(messages_in(requests[-1]))
    if len(requests) > 1:  # a turn without a word is void, and later requests skip it
        check_never_moves([requests[0], requests[-1]])


async def test_a_frozen_database_costs_no_turn(
    cluster: Cluster, model: FakeModelControl, postgres_server: PostgresServer
) -> None:
    """Both replicas stand still for longer than a lease, each with a turn of its own."""
    await model.script(HALF, HALF)
    await cluster.restarted()
    points = [Point(name, (HALF,), DELTA, "So it ") for name in ("here", "there")]
    async with AsyncExitStack() as stack:
        for pair, point in zip((cluster.survivor, cluster.doomed), points, strict=True):
            client = await stack.enter_async_context(bare_client(pair, "ann"))
            answer = client.stream("POST", "/v1/responses", json={"input": point.asked, "stream": True})
            events = live_events(await stack.enter_async_context(answer))
            point_task = asyncio.create_task(point.follow(events))
            stack.push_async_callback(asyncio.wait, [point_task])
        await until_reached(points)
        with postgres_server.frozen():
            await asyncio.sleep(2 * LEASE_SECONDS)
        await model.release(2)
    assert [point.seen[-1]["type"] for point in points] == ["response.completed"] * 2
    assert [text_of(point.seen[-1]["response"]) for point in points] == ["So it is."] * 2


async def test_a_replica_that_leaves_hands_over_what_it_cannot_finish(
    cluster: Cluster, model: FakeModelControl
) -> None:
    await model.script(HELD, ANSWER, when="Silent?")
    await model.script(HALF, when="Half?")
    await cluster.restarted()
    async with bare_client(cluster.survivor, "ann") as here, bare_client(cluster.doomed, "ann") as there:
        silent = await turn(there, "Silent?", background=True)
        half = await turn(there, "Half?", background=True)
        await model.wait_held(2)
        while text_of((await there.get(f"/v1/responses/{half['id']}")).json()) != "So it ":
            continue
        assert await asyncio.to_thread(cluster.doomed.backend.stop) == 0
        events = events_of((await here.get(f"/v1/responses/{silent['id']}?stream=true")).text)
        ended = (await here.get(f"/v1/responses/{half['id']}")).json()
    assert (events[-1]["type"], text_of(events[-1]["response"])) == ("response.completed", "So it is.")
    assert (ended["status"], text_of(ended)) == ("incomplete", "So it ")
    first, again = [request for request in await model.requests() if b"Silent?" in request.body]
    assert first.body == again.body
