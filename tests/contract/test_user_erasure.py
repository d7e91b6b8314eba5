"""A person leaves a database in which every table has rows of hers and of others'."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from sqlalchemy import Boolean, Column, Connection, ForeignKey, Integer, LargeBinary, Table, insert, select

from backend.agents.services.agent_files import AgentFiles
from backend.agents.services.agents import AgentCatalogue
from backend.agents.sql.store import SqlAgentStore
from backend.agents.sql.tables import agent_member
from backend.conversations.sql.conversations import SqlConversationStore
from backend.files.domain import FileQuota
from backend.files.services import FileClearing, Files
from backend.files.sql.files import SqlFileStore
from backend.foundation.sql.database import Database
from backend.foundation.sql.schema import Instant, metadata
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.knowledge.sql.tables import knowledge_member
from backend.migrations import tables as all_tables
from backend.restricted.sql.tables import restricted_member
from backend.retention.domain import Person
from backend.retention.services.user_erasure import UserErasure
from backend.retention.sql.people import SqlPersonStore
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from backend.vector_stores.services.file_indexes import FileIndexes
from tests.contract.store_cases import T0, database_url, migrated
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.clock import FakeClock
from tests.fakes.openai_house import TurnHouse
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.supervision import RecordingFailures, make_supervisor

TENANT, PIA, BOB = "acme", "pia-the-leaving", "bob-the-staying"
HERS, HIS = 1, 2
assert all_tables

STAY = {
    "chunk_claim": "the hash of a text that is being embedded; it expires within minutes",
    "engine_change": "which numbers of chunks an engine is still to be told of; it goes once it has been told",
    "edition_vectors": "vectors of a deleted base, which the sweep of vectors deletes",
    "idempotency_key": "keyed hashes of requests, which expire within a day",
    "index_page": "pages are numbered by their segment, and go with it",
    "receipt": "what was released of a restricted base, in a chain; it has no word of anybody",
    "receipt_chain": "the newest record of each tenant's chain",
    "receipt_document": "on which documents a released answer rests",
    "replica": "the leases of processes",
    "scim_group": "the version of a group of the tenant",
    "safe_summary_audit": "who was told what of a restricted base: a keyed hash stands in place of the user",
    "person_group": "the name of a group of the tenant",
    "tenant_move": "where a tenant moves to; it names nobody",
    "vector_space": "vectors of a deleted base, which the sweep of vectors deletes",
}
"""Tables whose rows stay, and why."""

EXPORTED = {
    "agent": "agent",
    "agent_member": "agent_membership",
    "api_key": "api_key",
    "attachment": "attached_file",
    "conversation": "conversation",
    "document": "document",
    "file_piece": "file_content",
    "group_member": "group_membership",
    "item": "item",
    "knowledge_base": "knowledge_base",
    "knowledge_member": "knowledge_membership",
    "response": "response",
    "restricted_member": "restricted_usage",
    "restricted_search": "restricted_search",
    "scim_user": "directory_user",
    "uploaded_file": "file",
    "waiting_turn": "waiting_turn",
}
"""The types of the lines in which an export shows what a table has of a person."""

OF_OTHER_ROWS = {
    "chunk": "pieces of documents",
    "claimed_groups": "a hash of the names of the person's groups, and when the newest token was issued",
    "file_batch": "which files were attached together",
    "file_batch_member": "which files were attached together",
    "index_gone": "the search index",
    "index_segment": "the search index",
    "log_entry": "the items again, as models read them",
    "model_call": "prompts and figures of responses",
    "placed_text": "texts of prompts",
    "prompt_header": "texts of prompts",
    "released_result": "texts of responses; stored under a hash of the user among other things",
    "released_result_base": "texts of responses; stored under a hash of the user among other things",
    "removed_item": "what the person has deleted",
    "restricted_charge": "the searches again, by base",
    "scim_member": "the memberships in groups again",
    "seen_point": "hashes of items",
    "served_chunk": "numbers of chunks that the person may not read",
    "told_fact": "keyed hashes of facts that restricted answers have told",
    "unseen_edition": "pieces of documents that are being replaced",
}
"""Tables whose rows go with a person and that an export leaves out, and what they hold."""

VALUES: dict[str, dict[str, Any]] = {
    "agent": {"definition": '{"instructions": "Be brief."}', "visibility": "private"},
    "agent_member": {"role": "owner"},
    "conversation": {"running_response_id": None},
    "knowledge_member": {"role": "owner"},
    "response": {"status": "completed"},
    "uploaded_file": {"state": "stored", "size_bytes": 1},
    "api_key": {"origin": "issued"},
    "waiting_turn": {"input_items": "[]"},
    "restricted_search": {"bases": "[]"},
    "scim_user": {"resource": "{}"},
    "restricted_member": {"refused_at": "[]"},
}
"""What a row has to hold so that stores take it for one that nothing is going on with."""


class Kit(NamedTuple):
    """The use case over the stores of one database, and what deletes files behind it."""

    database: Database
    leaving: UserErasure
    clearing: FileClearing


@pytest.fixture(params=["sqlite", "postgresql"])
async def kit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kit]:
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        clock, wake_signal, house = FakeClock(), asyncio.Event(), TurnHouse()
        knowledge, store = knowledge_store(database, clock), SqlFileStore(database, clock)
        file_indexes = FileIndexes(knowledge, SqlAttachmentStore(database, clock), store, wake_signal, clock)
        agent_files = AgentFiles(Files(store, clock, FileQuota()), file_indexes)
        models, tools = house.services.models, ToolCatalogue(FakeModelLister(), clock)
        agents = AgentCatalogue(SqlAgentStore(database), knowledge, models, tools, agent_files, clock)
        conversations = SqlConversationStore(database)
        people = SqlPersonStore(database, conversations, clock)
        forget_keys = house.state.known_keys.change
        leaving = UserErasure(people, conversations, knowledge, agents, house.services.responses, forget_keys)
        clearing = FileClearing(store, clock, (knowledge.withdraw_file,), make_supervisor(RecordingFailures()))
        yield Kit(database, leaving, clearing)


def value_of(column: Column[Any], whose: int) -> Any:
    """Return a value of a row of the first or of the second person; equal references meet."""
    user_id = PIA if whose == HERS else BOB
    for key in column.foreign_keys:
        return value_of(referred(key), whose)
    if column.name in ("user_id", "user_hash"):
        return user_id
    if column.name == "tenant":
        is_alone = len(column.table.primary_key) == 1 and column.primary_key
        return f"{TENANT}-{whose}" if is_alone and whose == HIS else TENANT
    if column.name in ("file_id", "cache_key"):
        table = "uploaded_file" if column.name == "file_id" else "released_result"
        return f"{table}-{whose}"
    if column.name == "members":
        return orjson.dumps({PIA if whose == HIS else BOB: "reader"}).decode()
    kinds = {Boolean: False, LargeBinary: b"x", Instant: T0, Integer: whose}
    of_kind = [value for kind, value in kinds.items() if isinstance(column.type, kind)]
    if of_kind:
        return of_kind[0]
    is_key = column.primary_key or column.unique
    return f"{column.table.name}-{whose}" if is_key else f"words of {user_id}"


def referred(key: ForeignKey) -> Column[Any]:
    return key.column


def row_of(table: Table, whose: int) -> dict[str, Any]:
    return {column.name: value_of(column, whose) for column in table.columns} | VALUES.get(table.name, {})


def fill(connection: Connection) -> None:
    for table in metadata.sorted_tables:
        connection.execute(insert(table), [row_of(table, HERS), row_of(table, HIS)])
    for table in (knowledge_member, agent_member, restricted_member):
        role = {"role": "reader"} if "role" in table.columns else {}
        connection.execute(insert(table), row_of(table, HIS) | {"user_id": PIA} | role)


def rows_by_table(connection: Connection) -> dict[str, list[str]]:
    found = {table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables}
    return {name: [repr(tuple(row)) for row in rows] for name, rows in found.items()}


def test_the_guide_names_each_type_of_an_export() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "retention.md").read_text(encoding="utf-8")
    assert {kind for kind in EXPORTED.values() if f"`{kind}`" not in guide} == set()


async def test_what_is_kept_beside_texts_is_shown_and_no_hash_of_a_key(kit: Kit) -> None:
    await kit.database.write(fill)
    people = SqlPersonStore(kit.database, SqlConversationStore(kit.database), FakeClock())
    lines = [line async for line in people.records(Person(TENANT, PIA))]
    by_type = {line["type"]: line for line in lines}
    beside_texts = {"api_key", "waiting_turn", "attached_file", "restricted_search", "restricted_usage"}
    assert set(by_type) == beside_texts | {"directory_user"}
    assert by_type["api_key"]["id"] == "api_key-1"
    assert by_type["waiting_turn"]["input_items"] == []
    text = orjson.dumps(lines).decode()
    assert "key_hash" not in text
    assert BOB not in text


async def test_nothing_of_hers_is_left_but_what_has_a_reason_and_nothing_of_others_goes(kit: Kit) -> None:
    await kit.database.write(fill)
    before = await kit.database.read(rows_by_table)
    counts = await kit.leaving.remove(Person(TENANT, PIA), with_owned=True)
    await kit.clearing.clear()
    after = await kit.database.read(rows_by_table)
    assert {name for name, rows in after.items() if any(PIA in row for row in rows)} <= set(STAY)
    assert {name: len(rows) for name, rows in after.items()} == {name: 2 if name in STAY else 1 for name in after}
    assert {name for name, rows in after.items() if len(rows) < len(before[name])} == {*EXPORTED, *OF_OTHER_ROWS}
    changed = {name for name, (row, *_) in after.items() if row not in before[name]}
    assert changed == {"conversation"}
    assert {kind for kind, count in counts.items() if not count} == {"stopped_turns"}
    assert set((await kit.leaving.remove(Person(TENANT, PIA), with_owned=True)).values()) == {0}
