"""A chat_shell that stands still (SIGSTOP): each turn ends or goes on, and the other one is not touched.

Nothing here is measured: the process stands still to the end, so that whoever waits for it waits for ever.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pytest

from backend.chat_shell_client.ports.chat_shell import ChatShell
from shared.message_size import SHORT_MESSAGE_BYTES
from tests.e2e.pair import SERVICE_TOKEN, Pair, PairOptions, lone_chat_shell, start_pair
from tests.e2e.turns import bare_client, live_events, next_delta, text_of
from tests.fakes.chat_shell_replicas import client_of
from tests.fakes.model_server import Reply
from tests.fakes.openai_house import TurnHouse
from tests.patience import PATIENCE_SECONDS, until
from tests.servers.services import Launch, RunningService

pytestmark = pytest.mark.combination

HALF = Reply(text=("So ", "it ", "is."), hold_after=2)
HELD = Reply(text=("So it is.",), hold_after=0)
WHOLE = Reply(text=("So ", "it ", "is."))
COUNT = 4


class Lone(NamedTuple):
    """A pair with one chat_shell, and what its questions begin with."""

    pair: Pair
    before: str


@contextmanager
def frozen(service: RunningService) -> Generator[None]:
    service.send(signal.SIGSTOP)
    try:
        yield
    finally:
        service.send(signal.SIGCONT)


@pytest.fixture(scope="module")
def shells(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Pair]:
    """A pair, and a second chat_shell on its model."""
    directory = tmp_path_factory.mktemp("frozen")
    pair = start_pair(launch_for_module, directory / "one", PairOptions())
    return pair, lone_chat_shell(launch_for_module, directory / "two", pair)


def port_of(pair: Pair) -> int:
    return int(pair.chat_shell_grpc_target.rpartition(":")[2])


def count_links(client: ChatShell) -> int:
    return cast(Any, client)._client._links._known


@asynccontextmanager
async def house_over(*pairs: Pair) -> AsyncGenerator[TurnHouse]:
    """Open a house whose turns run in these chat_shells, once it has found all of them."""
    async with client_of(*map(port_of, pairs), token=SERVICE_TOKEN) as client:
        house = TurnHouse(chat_shell=client)
        house.clock.advance((datetime.now(UTC) - house.clock.now()).total_seconds())
        async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
            await house.ask()
            await until(lambda: count_links(client) == len(pairs))
            yield house


async def test_of_two_that_run_turns_the_frozen_one_loses_them_and_gets_no_other_until_it_answers(
    shells: tuple[Pair, Pair],
) -> None:
    async with shells[0].fresh_model() as model, house_over(*shells) as house:
        await model.script(*[HALF] * COUNT, when="Half")
        await model.script(*[HELD] * COUNT, *[WHOLE] * COUNT, when="Held")
        halves = [await house.start(input="Half") for _ in range(COUNT)]
        await model.wait_held(COUNT)
        helds = [await house.start(input="Held") for _ in range(COUNT)]
        await model.wait_held(2 * COUNT)
        with frozen(shells[1].chat_shell):
            moved = COUNT // 2
            await until(lambda: sum(running.has_ended for running in (*halves, *helds)) == 2 * moved)
            new = [await house.ask(input="Hi") for _ in range(COUNT)]
            assert [response.status for response in new] == ["completed"] * COUNT
            await model.release(2 * COUNT)  # the ones of the other, too
            ended = [await running.wait_until_ended() for running in (*halves, *helds)]
            assert count_links(house.chat_shell) == 1
        statuses = sorted(response.status for response in ended[:COUNT])
        assert statuses == ["completed"] * (COUNT - moved) + ["incomplete"] * moved
        texts = {response.status: text_of(cast(Any, response.body)) for response in ended[:COUNT]}
        assert texts == {"completed": "So it is.", "incomplete": "So it "}
        assert {(response.status, text_of(cast(Any, response.body))) for response in ended[COUNT:]} == {
            ("completed", "So it is.")
        }
        await until(lambda: count_links(house.chat_shell) == 2)
        assert (await house.ask(input="Hi")).status == "completed"


@pytest.fixture(scope="module", params=["link", "execute", "http"])
def lone(request: pytest.FixtureRequest, launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Lone:
    """A pair, and what stands before each question so that its turn goes this way to chat_shell."""
    options = PairOptions(over_http=request.param == "http")
    pair = start_pair(launch_for_module, tmp_path_factory.mktemp(f"frozen-{request.param}"), options)
    return Lone(pair, "x" * (SHORT_MESSAGE_BYTES if request.param == "execute" else 0))


async def test_where_there_is_no_other_one_each_turn_ends_and_the_next_runs_once_it_answers(lone: Lone) -> None:
    pair = lone.pair
    async with pair.fresh_model() as model, bare_client(pair, "ann") as client:
        await model.script(HALF, when="Half")
        await model.script(HELD, when="Held")
        asked = {"stream": True, "input": lone.before + "Half"}
        async with client.stream("POST", "/v1/responses", json=asked) as answer:
            events = live_events(answer)
            said = ""
            while said != "So it ":
                said += await next_delta(events)
            held = asyncio.create_task(client.post("/v1/responses", json={"input": lone.before + "Held"}))
            await model.wait_held(2)
            with frozen(pair.chat_shell):
                rest = [event async for event in events]
                failed = await held
                refused = await client.post("/v1/responses", json={"input": lone.before + "New"})
        assert (rest[-1]["type"], text_of(rest[-1]["response"])) == ("response.incomplete", "So it ")
        assert (failed.status_code, refused.status_code) == (503, 503)
        await model.release(2)
        while (again := await client.post("/v1/responses", json={"input": lone.before + "Again"})).status_code == 503:
            assert again.json()["error"]["code"] == "server_error"
        assert again.json()["status"] == "completed"
