"""A backup of a live system, restored: whatever was acknowledged before the backup began is there."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx2
import pytest

from tests.e2e.half_turns import half_a_turn
from tests.e2e.pair import PairOptions, start_pair, start_replica
from tests.e2e.turns import Body, bare_client, new_conversation, text_of, turn
from tests.examples import first_of
from tests.fakes.model_server import Reply
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole

GUIDE = Path(__file__).parents[2] / "docs" / "backup.md"
WRITERS = 4
TURNS_BEFORE = 12
HALF = Reply(text=("Half ", "an ", "answer"), hold_after=2)
USUAL = Reply(text=("Noted", "."), repeat=True)


class Traffic:
    """Clients that take turns until they are told to stop; `answers` are what they were told is done, in order."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._is_over = False
        self._told = asyncio.Condition()
        self.answers: list[Body] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for writer in range(WRITERS):
                group.create_task(self._write(await new_conversation(self._client), writer))

    async def told(self, more: int) -> None:
        """Return once so many further turns were answered."""
        wanted = len(self.answers) + more
        async with self._told:
            await self._told.wait_for(lambda: len(self.answers) >= wanted)

    def stop(self) -> None:
        self._is_over = True

    async def _write(self, conversation: str, writer: int) -> None:
        number = 0
        while not self._is_over:
            answer = await turn(self._client, f"Writer {writer}, note {number}", conversation=conversation)
            number += 1
            async with self._told:
                self.answers.append(answer)
                self._told.notify_all()


def run_guide(heading: str, directory: Path, environment: Mapping[str, str]) -> None:
    """Run the commands that docs/backup.md gives under a heading, as an operator would."""
    section = GUIDE.read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0]
    done = subprocess.run(
        ["sh", "-euc", commands], cwd=directory, env=dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("store", first_of("sqlite", "postgresql"))
async def test_a_backup_that_was_taken_under_load_holds_every_acknowledged_turn(
    store: str, launch: Launch, tmp_path: Path, postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    live: dict[str, str] = {}
    name = postgres_server.new_database()
    if store == "postgresql":
        live = {"BACKEND_DATABASE_URL": postgres_server.url(name), "BACKEND_REDIS_URL": valkey_server.url}
    pair = start_pair(launch, tmp_path / "live", PairOptions(backend=live))

    def take_sqlite() -> str:
        python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        run_guide("SQLite", tmp_path / "live", {"PATH": python})
        return f"sqlite+aiosqlite:///{tmp_path / 'live' / 'ballast-backup.db'}"

    def take_postgresql() -> str:
        address = {"DATABASE": postgres_server.url(name, driver="")}
        run_guide("PostgreSQL", tmp_path, postgres_server.client_environment | address)
        return postgres_server.url("restored")

    take: Callable[[], str] = take_sqlite if store == "sqlite" else take_postgresql
    async with pair.control() as model, bare_client(pair, "ann") as client:
        await model.script(HALF, when="Go on")
        await model.script(USUAL)
        traffic = Traffic(client)
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half, asyncio.TaskGroup() as group:
            group.create_task(traffic.run())
            await traffic.told(TURNS_BEFORE)
            acknowledged = list(traffic.answers)
            url = await asyncio.to_thread(take)
            await traffic.told(WRITERS)
            traffic.stop()
        moved = {"BACKEND_DATABASE_URL": url, "BACKEND_REDIS_URL": ""}
        restored = start_replica(launch, tmp_path / "restored", pair, **moved)
        async with bare_client(restored, "ann") as after:
            for answer in acknowledged:
                found = (await after.get(f"/v1/responses/{answer['id']}")).json()
                assert (found["status"], text_of(found)) == ("completed", text_of(answer))
            interrupted = await ended(after, half.path)
            last = await ended_turn(after, acknowledged[-1]["conversation"]["id"])
    assert (interrupted["status"], text_of(interrupted)) == ("incomplete", "Half an ")
    assert text_of(last) == "Noted."
    postgres_server.drop_database(name)
    postgres_server.drop_database("restored")


async def ended(client: httpx2.AsyncClient, path: str) -> Body:
    """Return a response once it does not run any more: the restored backend takes over what ran in the backup."""
    while True:
        response = (await client.get(path)).json()
        if response["status"] != "in_progress":
            return response
        await asyncio.sleep(0.05)


async def ended_turn(client: httpx2.AsyncClient, conversation: str) -> Body:
    """Go on with a conversation as soon as no turn of the backup holds it."""
    while True:
        answer = await client.post("/v1/responses", json={"input": "And now?", "conversation": conversation})
        if answer.status_code != 409:
            assert answer.status_code == 200, answer.text
            return answer.json()
        await asyncio.sleep(0.05)
