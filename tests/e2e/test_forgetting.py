"""Processes killed while they delete what is old, or a person's: nothing is half there, and the rest goes later."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from sqlalchemy import Connection, Table, func, select, update

from backend.conversations.sql.tables import conversation, item, log_entry, response
from backend.foundation.sql.database import Database
from tests.contract.store_cases import (
    database_url,
    make_end,
    make_entry,
    make_item,
    make_turn,
    migrated,
    sql_stores,
)
from tests.e2e.pair import ADMIN_KEY, Pair, starting_backend
from tests.servers.services import Launch

CONVERSATIONS, LENGTH = 12, 60
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
OTHERS = "conv_of_bob"


class Filled(NamedTuple):
    """A database with long conversations of Ann, and one of Bob."""

    database: Database
    url: str
    directory: Path

    def start(self, launch: Launch, **settings: str) -> Pair:
        return starting_backend(launch, self.directory, BACKEND_DATABASE_URL=self.url, **settings)

    async def lengths(self) -> Mapping[str, tuple[bool, int]]:
        """Return of each conversation whether somebody can find it, and how many entries and items it has."""
        return await self.database.read(_lengths)

    async def halfway(self) -> None:
        """Return once some entries are deleted."""
        whole = CONVERSATIONS * LENGTH * 2
        while True:
            if (left := await self._left()) != whole:
                assert left > 0
                return
            await asyncio.sleep(0.005)

    async def all_gone(self) -> None:
        while True:
            if not await self._left() and await self.answered() == {OTHERS}:
                return
            await asyncio.sleep(0.05)

    async def answered(self) -> set[str]:
        """Return the conversations of all responses that are left."""
        query = select(response.c.conversation_id)
        return await self.database.read(lambda c: set(c.execute(query).scalars()))

    async def _left(self) -> int:
        return sum(length for name, (_, length) in (await self.lengths()).items() if name != OTHERS)


def _lengths(connection: Connection) -> Mapping[str, tuple[bool, int]]:
    def rows_of(table: Table) -> Mapping[str, int]:
        counted = select(table.c.conversation_id, func.count()).group_by(table.c.conversation_id)
        return {str(name): int(count) for name, count in connection.execute(counted)}

    entries, items = rows_of(log_entry), rows_of(item)
    found = connection.execute(select(conversation.c.id, conversation.c.tenant != "")).all()
    return {name: (is_found, entries.get(name, 0) + items.get(name, 0)) for name, is_found in found}


async def _add(database: Database, conversation_id: str) -> None:
    stores, response_id = sql_stores(database), conversation_id.replace("conv", "resp")
    await stores.turns.begin(make_turn(None, response_id, conversation_id))
    await stores.turns.finish(make_end(1, response_id, conversation_id))
    places = range(2, LENGTH)
    await stores.conversations.append(
        conversation_id, 2, [make_entry(place) for place in places], [make_item(place) for place in places]
    )


@pytest.fixture
async def filled(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Filled]:
    url = database_url(getattr(request, "param", "sqlite"), request, tmp_path)
    async with migrated(url) as database:
        names = [f"conv_{number}" for number in range(CONVERSATIONS)]
        for each in (*names, OTHERS):
            await _add(database, each)
        for table in (conversation, response):
            others = table.c.id.in_([OTHERS, OTHERS.replace("conv", "resp")])
            await database.write(
                lambda c, table=table, others=others: c.execute(update(table).where(others).values(user_id="bob"))
            )
        yield Filled(database, url, tmp_path)


async def grow_old(filled: Filled) -> None:
    """Make all of Ann's conversations older than the backend keeps anything."""
    for table, name in ((conversation, "id"), (response, "conversation_id"), (log_entry, "conversation_id")):
        aged = update(table).where(table.c[name] != OTHERS).values(created_at=LONG_AGO)
        await filled.database.write(lambda c, aged=aged: c.execute(aged))


def check_halves(lengths: Mapping[str, tuple[bool, int]]) -> None:
    """What somebody can find is whole."""
    assert lengths[OTHERS] == (True, 2 * LENGTH)
    assert {length for is_found, length in lengths.values() if is_found} == {2 * LENGTH}


async def test_a_sweep_that_is_killed_leaves_nothing_half_and_the_next_one_goes_on(
    filled: Filled, launch: Launch
) -> None:
    await grow_old(filled)
    backend = filled.start(launch, BACKEND_RETENTION_DAYS="2000")
    await filled.halfway()
    backend.backend.kill()
    check_halves(await filled.lengths())
    filled.start(launch, BACKEND_RETENTION_DAYS="2000")
    await filled.all_gone()
    check_halves(await filled.lengths())


@pytest.mark.parametrize("filled", ["postgresql"], indirect=True)
async def test_a_person_whose_deletion_is_killed_is_deleted_by_the_same_request(filled: Filled, launch: Launch) -> None:
    backend = filled.start(launch)
    backend.backend.wait_ready()
    asked = asyncio.create_task(asyncio.to_thread(delete_ann, backend))
    await filled.halfway()
    backend.backend.kill()
    with pytest.raises(httpx2.TransportError):
        await asked
    check_halves(await filled.lengths())
    again = filled.start(launch)
    again.backend.wait_ready()
    counts = await asyncio.to_thread(delete_ann, again)
    assert 0 < counts["conversations"] <= CONVERSATIONS
    assert counts["responses"] == CONVERSATIONS
    assert await filled.lengths() == {OTHERS: (True, 2 * LENGTH)}
    assert await filled.answered() == {OTHERS}


def delete_ann(backend: Pair) -> Mapping[str, int]:
    with backend.http(ADMIN_KEY) as admin:
        answer = admin.delete("/v1/users/ann", params={"tenant": "acme"})
    assert answer.status_code == 200, answer.text
    return answer.json()["counts"]
