"""How often a turn asks the database: before its first request is sent, and at its end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from sqlalchemy import Connection

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.foundation.sql.database import Database
from backend.foundation.sql.statements import Change, Parameters, Row, Statement
from shared.errors import TurnRunning
from tests.contract.store_cases import database_url, made, make_call, make_end, make_turn, migrated, sql_stores
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA, open_house
from tests.fakes.sent_statements import noted_statements, verbs_of
from tests.fakes.store_state import StoreState

Result = TypeVar("Result")
Behind = Callable[[StoredResponse], dict[str, str]]


class CountingDatabase:
    """Hands everything on, and writes down which verbs it was asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.verbs: list[str] = []

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        return self._database.dialect

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        self.verbs.append("find")
        return await self._database.find(query, parameters)

    async def read(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        self.verbs.append("read")
        return await self._database.read(work, timeout_seconds=timeout_seconds)

    async def snapshot(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        self.verbs.append("snapshot")
        return await self._database.snapshot(work, timeout_seconds=timeout_seconds)

    async def write(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        self.verbs.append("write")
        return await self._database.write(work, timeout_seconds=timeout_seconds)

    async def change(self, changes: Sequence[Change]) -> list[int]:
        self.verbs.append("change")
        return await self._database.change(changes)

    async def write_apart(self, work: Callable[[Connection], Result], *, timeout_seconds: float) -> Result:
        self.verbs.append("write_apart")
        return await self._database.write_apart(work, timeout_seconds=timeout_seconds)

    async def check_writable(self) -> None:
        await self._database.check_writable()

    async def ping(self) -> None:
        await self._database.ping()

    async def close(self) -> None:
        await self._database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CountingDatabase]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield CountingDatabase(opened)


async def verbs_until_sent(database: CountingDatabase, behind: Behind) -> list[str]:
    """Begin a turn behind another one; tell what the database was asked until the model could speak."""
    gate = asyncio.Event()

    def conversations(_: StoreState) -> SqlConversationStore:
        return SqlConversationStore(database)

    def turns(_: StoreState) -> SqlTurnStore:
        return SqlTurnStore(database)

    async with open_house(
        answer("Hello."),
        [gate, *answer("And again.")],
        conversations_class=conversations,
        turns_class=turns,
        checkpoint_seconds=60.0,
    ) as house:
        first = await house.ask()
        database.verbs.clear()
        running = await house.start(ADA, **behind(first))
        verbs = list(database.verbs)
        gate.set()
        assert (await running.ended()).status == "completed"
        return verbs


async def test_the_log_costs_a_turn_one_read_and_one_write(database: CountingDatabase) -> None:
    assert await verbs_until_sent(database, lambda first: {"conversation": first.conversation_id}) == ["read", "change"]


async def test_behind_a_response_that_one_is_read_besides(database: CountingDatabase) -> None:
    verbs = await verbs_until_sent(database, lambda first: {"previous_response_id": first.id})
    assert verbs == ["read", "read", "change"]


# As each is stored: one statement of PostgreSQL can do what takes SQLite, which is asked without a round trip, several.
PLAIN_TURN = {
    "sqlite": ({"BEGIN": 1, "INSERT": 4, "COMMIT": 1}, {"BEGIN": 1, "UPDATE": 2, "INSERT": 4, "COMMIT": 1}),
    "postgresql": ({"WITH": 1}, {"WITH": 1}),
}


@pytest.mark.parametrize("kind", list(PLAIN_TURN))
async def test_a_plain_turn_is_stored_in_two_transactions(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with noted_statements() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database:
            turns = sql_stores(database).turns
            await database.check_writable()  # what a first write needs is there
            sent.clear()
            await turns.begin(make_turn())
            begun = verbs_of(sent)
            sent.clear()
            assert await turns.finish(make_end(1).model_copy(update={"calls": made(make_call(1))}))
            ended = verbs_of(sent)
    assert (begun, ended) == PLAIN_TURN[kind]


NEXT_TURN = {"sqlite": {"BEGIN": 1, "UPDATE": 1, "INSERT": 3, "COMMIT": 1}, "postgresql": {"WITH": 1}}


@pytest.mark.parametrize("kind", list(NEXT_TURN))
async def test_the_next_turn_of_a_conversation_is_stored_in_one_transaction(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with noted_statements() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database:
            turns = sql_stores(database).turns
            await turns.begin(make_turn())
            await turns.finish(make_end(1))
            later = make_turn(2, "resp_2")
            sent.clear()
            await turns.begin(later)
            begun = verbs_of(sent)
            with pytest.raises(TurnRunning):
                await turns.begin(make_turn(2, "resp_3"))
            assert await turns.find("resp_3") is None
    assert begun == NEXT_TURN[kind]
