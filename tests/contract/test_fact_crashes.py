"""`kill -9` while answers are settled: an outcome, its facts, record and receipt are stored together or not at all."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from sqlalchemy import ColumnElement, Connection, func, select

from backend.foundation.sql.chosen import open_database
from backend.restricted.domain.receipts import ReceiptQuery, write_end
from backend.restricted.sql import tables
from shared.models.safe_summary import Failure
from shared.receipts import verify_chain
from tests.contract.knowledge_cases import make_base, put
from tests.contract.restricted_cases import SIGNER, sql_restricted
from tests.contract.store_cases import POOL_WAIT_SECONDS, database_url
from tests.contract.telling_answers import ANSWERS_EACH, MOST_FACTS, tell_answer
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.whole

NAMES = ("doomed", "other")
HEARD = 3 * ANSWERS_EACH
"""So many answers of each process are stored before one of the two is killed: those of three readers, and more."""


class Stored(NamedTuple):
    """By search whether it was released, and for what it was refused; how many facts, records and receipts it has."""

    released: dict[str, bool]
    reasons: dict[str, str]
    facts: Counter[str]
    records: Counter[str]
    receipts: Counter[str]
    readers: Counter[str]


def read_stored(connection: Connection) -> Stored:
    search, fact, audit, receipt = (
        tables.restricted_search, tables.told_fact, tables.safe_summary_audit, tables.receipt,
    )  # fmt: skip
    rulings = {row.id: orjson.loads(row.ruling) for row in connection.execute(select(search)) if row.ruling}

    def count(column: ColumnElement[str]) -> Counter[str]:
        rows = connection.execute(select(column.label("name"), func.count().label("rows")).group_by(column))
        return Counter({row.name: row.rows for row in rows})

    return Stored(
        {key: ruling["is_released"] for key, ruling in rulings.items()},
        {key: ruling["reason"] for key, ruling in rulings.items()},
        count(fact.c.search_id),
        count(audit.c.search_id),
        count(func.substr(receipt.c.cache_key, 1 + len("key-"))),
        count(fact.c.user_id),
    )


async def stored_in(url: str) -> Stored:
    database = open_database(url, pool_wait_seconds=POOL_WAIT_SECONDS)
    try:
        return await database.read(read_stored)
    finally:
        await database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_killed_process_leaves_no_answer_without_its_facts(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = database_url(kind, request, tmp_path)
    async with sql_restricted(url) as stores:
        await stores.knowledge.create_base(make_base("kb_a"), "ann")
        await put(stores.knowledge, "a", ["text"], base_id="kb_a")
    doomed, other = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.contract.telling_answers", url, name, stdout=asyncio.subprocess.PIPE
        )
        for name in NAMES
    ]
    async with asyncio.timeout(PATIENCE_SECONDS):
        heard = [*await asyncio.gather(*(hear(each, HEARD) for each in (doomed, other)))]
        doomed.kill()
        heard += [await hear_rest(doomed), await hear(other, ANSWERS_EACH)]
        other.kill()
        heard.append(await hear_rest(other))
    told = {line for lines in heard for line in lines}
    stored = await stored_in(url)
    assert told <= stored.released.keys()
    for search, is_released in stored.released.items():
        kept = (stored.facts[search], stored.records[search], stored.receipts[search])
        assert kept == ((2, 1, 1) if is_released else (0, 1, 0)), search
        assert is_released or stored.reasons[search] == Failure.BUDGET_FACTS
    assert stored.facts.keys() | stored.receipts.keys() <= stored.released.keys()
    assert False in stored.released.values()
    assert max(stored.readers.values()) == MOST_FACTS
    # whoever comes back goes on with what is left of the same budget
    async with sql_restricted(url) as stores:
        receipts = [
            sealed.line for sealed in await stores.trail.receipts("acme", ReceiptQuery(limit=len(stored.receipts)))
        ]
        end = write_end("acme", await stores.trail.end_of_receipts("acme"), SIGNER)
        assert verify_chain([*receipts, end.line], SIGNER.public_key) == len(stored.receipts)
        last = max(int(search.rpartition("_")[2]) for search in stored.released)
        reader_first = last // ANSWERS_EACH * ANSWERS_EACH
        for number in range(reader_first, reader_first + ANSWERS_EACH):
            await tell_answer(stores, "back", number)
    stored = await stored_in(url)
    assert stored.readers[f"reader_{last // ANSWERS_EACH}"] == MOST_FACTS
    assert max(stored.readers.values()) == MOST_FACTS


async def hear(teller: asyncio.subprocess.Process, count: int) -> list[str]:
    """Return so many of the answers that a process says are stored."""
    assert teller.stdout is not None
    lines = [(await teller.stdout.readline()).decode().strip() for _ in range(count)]
    assert all(lines), "the process ended by itself"
    return lines


async def hear_rest(teller: asyncio.subprocess.Process) -> list[str]:
    """Return what a killed process has said, but for a line that it has not finished."""
    assert teller.stdout is not None
    lines = (await teller.stdout.read()).decode().split("\n")[:-1]
    await teller.wait()
    return lines
