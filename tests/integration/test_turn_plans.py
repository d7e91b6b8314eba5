"""Turns beside many others read no whole table: where they begin, wait, go on, are stopped, end and are taken over."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Integer, Table, Text, cast, insert, literal, select, text, true

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.sql import tables
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.conversations.sql.waiting_turns import SqlWaitingTurnStore
from backend.foundation.sql.database import Database
from tests.contract.store_cases import database_url, migrated
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.openai_house import ADA, TurnHouse
from tests.fakes.statement_plans import Plan, noted_queries, plans_of

COPIES = 3_000
LARGE: tuple[Table, ...] = (
    tables.conversation,
    tables.log_entry,
    tables.item,
    tables.response,
    tables.seen_point,
    tables.prompt_header,
    tables.model_call,
    tables.waiting_turn,
)
NAMES = {"id", "conversation_id", "response_id", "turn_id", "entered_id", "latest_response_id", "digest"}
RUNNING = "ix_response_running"
"""Holds the turns that run, and no other."""

READS_ALL = re.compile(rf"(SCAN|Seq Scan) ({'|'.join(table.name for table in LARGE)})\b(?! USING INDEX {RUNNING})")


def multiply(connection: Connection) -> None:
    """Put copies of all rows beside them, under other names."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
    for table in LARGE:
        _copy(connection, table)
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def _copy(connection: Connection, table: Table) -> None:
    first = select(literal(1).label("number")).cte("copies", recursive=True)
    copies = first.union_all(select(first.c.number + 1).where(first.c.number < COPIES))
    columns = [each for each in table.c if not (each.name == "id" and isinstance(each.type, Integer))]
    values = [each + "-" + cast(copies.c.number, Text) if each.name in NAMES else each for each in columns]
    made = select(*values).select_from(table.join(copies, true()))
    connection.execute(insert(table).from_select([each.name for each in columns], made))


def replica_over(database: Database, chat_shell: ScriptedChatShell, name: str, before: TurnHouse | None) -> TurnHouse:
    """Return a process over the database."""
    shared: dict[str, Any] = (
        {} if before is None else {"events": before.events, "signals": before.signals, "state": before.state}
    )
    return TurnHouse(
        chat_shell=chat_shell,
        conversations_class=lambda _state: SqlConversationStore(database),
        turns_class=lambda _state: SqlTurnStore(database),
        waiting_class=lambda _state: SqlWaitingTurnStore(database),
        replica=name,
        lease_seconds=30.0,
        **shared,
    )


async def ask_and_steer(house: TurnHouse, gate: asyncio.Event) -> StoredResponse:
    """Run a turn, and one that a message enters."""
    first = await house.ask()
    running = await house.start(conversation=first.conversation_id)
    await house.queue(how="steer", conversation=running.response.conversation_id)
    gate.set()
    return await running.wait_until_ended()


async def run_all_kinds(house: TurnHouse, other: TurnHouse, conversation_id: str, gate: asyncio.Event) -> None:
    """Begin turns in each way, let some wait, stop one, and look for what other processes have left."""
    running = await house.start(conversation=conversation_id)
    queued = [await house.queue(how=how, conversation=conversation_id) for how in ("steer", "queue", "queue")]
    await house.services.responses.cancel(ADA, queued[-1].id)
    await house.services.waiting.look()
    gate.set()
    ended = await running.wait_until_ended()
    while await house.ports.stored.waiting.startable(1):
        await house.services.waiting.look()
    stopped = await house.start(previous_response_id=ended.id)
    await house.services.responses.cancel(ADA, stopped.response.id)
    for replica in (house, other):
        await asyncio.gather(replica.recovery.take(), replica.recovery.renew())
    await house.services.responses.delete(ADA, ended.id)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_turn_reads_no_whole_table(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    gates = [asyncio.Event() for _ in range(2)]
    begun = [script for gate in gates for script in ([gate, *answer("One.")], answer("Two."))]
    script = ScriptedChatShell(answer("Zero."), *begun, answer("Three."), answer("Four."))
    with noted_queries() as sent:
        async with migrated(database_url(kind, request, tmp_path)) as database, asyncio.timeout(15):
            house = replica_over(database, script, "replica-1", None)
            other = replica_over(database, script, "replica-2", house)
            async with house.registry, other.registry:
                for replica in (house, other):
                    await replica.recovery.at_start()
                first = await ask_and_steer(house, gates[0])
                await database.write(multiply)
                sent.clear()
                await run_all_kinds(house, other, first.conversation_id, gates[1])
            running = list(sent)
            plans = await database.read(lambda connection: plans_of(connection, running))
    assert {"UPDATE", "SELECT"} <= {plan.statement.split()[0] for plan in plans}
    flaws = {plan.statement: flaws for plan in plans if (flaws := flaws_of(plan))}
    assert not flaws, "\n\n".join(f"{statement}\n{steps}" for statement, steps in flaws.items())


def flaws_of(plan: Plan) -> list[str]:
    """Return the steps that read all rows of a large table."""
    return [step for step in plan.steps if READS_ALL.match(step)]
