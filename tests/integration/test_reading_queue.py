"""Taking a file from a long queue reads an index, and neither walks nor sorts the files that wait."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from backend.foundation.sql.database import Database
from backend.knowledge.domain.attachments import Attachment
from backend.knowledge.sql.attachment_queue import any_waits, lease_next, queue_new
from tests.contract.knowledge_cases import T0, make_base
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store

FILES = 3_000
INDEX = "ix_attachment_waiting"


async def fill(database: Database, users: int) -> None:
    await knowledge_store(database, FakeClock()).create_base(make_base(), "ann")
    waiting = [
        Attachment(
            knowledge_base_id="kb_a",
            file_id=f"file-{number}",
            tenant="acme",
            user_id=f"user-{number % users}",
            filename="a.txt",
            attributes={},
            created_at=T0 + timedelta(seconds=number),
        )
        for number in range(FILES)
    ]
    await database.write(lambda connection: queue_new(connection, waiting))


def plans_of_taking(connection: Connection, served: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each statement that reads when a file is taken, with its plan."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE attachment"))
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    assert any_waits(connection)
    assert lease_next(connection, served, 60.0) is not None
    event.remove(connection, "before_cursor_execute", note)
    word = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
    for statement, parameters in sent:
        if statement.startswith("SELECT"):
            yield statement, "\n".join(str(row) for row in connection.exec_driver_sql(word + statement, parameters))


@pytest.mark.parametrize("users", [1, 1_000])
@pytest.mark.parametrize("kind", first_of("sqlite", "postgresql"))
async def test_a_file_is_found_by_its_index(
    kind: str, users: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with migrated(database_url(kind, request, tmp_path)) as database:
        await fill(database, users)
        served = ("acme", "user-0")
        plans = await database.write(lambda connection: list(plans_of_taking(connection, served)))
    assert len(plans) >= 4
    for statement, plan in plans:
        assert INDEX in plan, f"{statement}\n{plan}"
        assert "Seq Scan" not in plan, f"{statement}\n{plan}"
    if kind == "sqlite":
        # Pairs are not compared: SQLite would walk over all files of the user who was served last.
        assert not any("(tenant,user_id)" in plan for _, plan in plans), plans
