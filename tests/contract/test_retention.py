"""Retention over the real stores of both databases."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, func, insert, select, text, update

from backend.conversations.sql import tables as told
from backend.conversations.sql.deletion import withdraw
from backend.files.domain import FilePurpose, FileQuota, StoredFile
from backend.files.sql.files import SqlFileStore
from backend.foundation.sql.database import Database
from backend.foundation.sql.row_steps import ROWS_AT_ONCE
from backend.knowledge.domain.file_indexes import file_index_of_agent, file_index_of_user
from backend.knowledge.domain.labels import Label, may_read
from backend.knowledge.sql.tables import attachment
from backend.restricted.sql import tables as restricted
from backend.restricted.sql.ledger import SqlRestrictedLedger
from backend.retention.domain import Kept, Person, PersonalRows, RetentionTerms
from backend.retention.services.sweeping import Retention
from backend.retention.sql.expiry import SqlExpiryStore
from backend.retention.sql.people import SqlPersonStore
from backend.retention.sql.withholding import withhold_answers
from shared.errors import NotFound
from shared.models.execution import AccessMode
from shared.models.safe_summary import AnswerReason
from tests.contract.knowledge_cases import make_base
from tests.contract.restricted_cases import SIGNER, make_record, settlement
from tests.contract.store_cases import (
    T0,
    Stores,
    database_url,
    deleted_rows,
    make_end,
    make_entry,
    make_item,
    make_turn,
    migrated,
    sql_stores,
)
from tests.fakes.clock import FakeClock

DAY = timedelta(days=1).total_seconds()


class RecordingSweeps:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.sweeps: list[Mapping[Kept, int]] = []

    def swept(self, deleted: Mapping[Kept, int]) -> None:
        self.sweeps.append(deleted)


class Kit(NamedTuple):
    """The stores over one database, with a clock that stands at first where their values are made."""

    database: Database
    stores: Stores
    clock: FakeClock
    observer: RecordingSweeps

    async def sweep(self, days: int | None = 30, audit: int | None = None) -> Mapping[Kept, int]:
        """Sweep once and return what was deleted."""
        terms = RetentionTerms(*(timedelta(days=each) if each is not None else None for each in (days, audit)))
        conversations = self.stores.conversations
        expiry = SqlExpiryStore(self.database, conversations, self.clock)
        await Retention(expiry, conversations, terms, self.clock, self.observer).sweep()
        return self.observer.sweeps[-1]

    async def rows_of(self, table: Any) -> int:
        """Count the rows of a table."""
        return await self.database.read(
            lambda connection: connection.execute(select(func.count()).select_from(table)).scalar_one()
        )


@pytest.fixture(params=["sqlite", "postgresql"])
async def kit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kit]:
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        yield Kit(database, sql_stores(database), FakeClock(), RecordingSweeps())


async def finished(kit: Kit, conversation_id: str, response_id: str) -> None:
    await kit.stores.turns.begin(make_turn(None, response_id, conversation_id))
    await kit.stores.turns.finish(make_end(1, response_id, conversation_id))


async def test_an_untouched_conversation_goes_with_all_its_rows(kit: Kit) -> None:
    await finished(kit, "conv_a", "resp_a")
    count = 2 * max(ROWS_AT_ONCE.values()) + 1
    entries = [make_entry(place) for place in range(2, 2 + count)]
    items = [make_item(place) for place in range(2, 2 + count)]
    await kit.stores.conversations.append("conv_a", 2, entries, items)
    kit.clock.advance(29 * DAY)
    assert await kit.sweep() == {Kept.CONVERSATIONS: 0, Kept.RESPONSES: 0, Kept.FILES: 0}
    kit.clock.advance(2 * DAY)
    assert await kit.sweep() == {Kept.CONVERSATIONS: 1, Kept.RESPONSES: 1, Kept.FILES: 0}
    tables = (told.conversation, told.log_entry, told.item, told.response, told.model_call, told.seen_point)
    assert [await kit.rows_of(table) for table in tables] == [0] * len(tables)


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Kit]:
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        yield Kit(database, sql_stores(database), FakeClock(), RecordingSweeps())


async def test_no_statement_on_sqlite_deletes_more_than_one_row_whatever_it_holds(small: Kit) -> None:
    """A transaction ends behind the statement in which its time is over, so that the size of rows bounds it, too."""
    for name in "abc":
        await finished(small, f"conv_{name}", f"resp_{name}")
    small.clock.advance(31 * DAY)
    with deleted_rows() as deleted:
        assert (await small.sweep())[Kept.RESPONSES] == 3
    assert sum(deleted) >= 9
    assert max(deleted) == 1


async def test_sqlite_writes_no_zeros_over_what_it_deletes(small: Kit) -> None:
    """Some builds do unless they are told otherwise; the deletion of 20 MB then holds all writers for 170 ms."""
    fast = 2
    query = text("PRAGMA secure_delete")
    assert await small.database.write(lambda connection: connection.execute(query).scalar_one()) == fast


async def test_what_runs_or_was_used_since_stays(kit: Kit) -> None:
    await kit.stores.turns.begin(make_turn(None, "resp_a", "conv_a"))
    await finished(kit, "conv_b", "resp_b")
    kit.clock.advance(40 * DAY)
    used = make_entry(2).model_copy(update={"created_at": kit.clock.now()})
    await kit.stores.conversations.append("conv_b", 2, [used], [make_item(2)])
    assert await kit.sweep() == {Kept.CONVERSATIONS: 0, Kept.RESPONSES: 0, Kept.FILES: 0}
    assert (await kit.rows_of(told.conversation), await kit.rows_of(told.response)) == (2, 2)


async def test_a_conversation_with_a_waiting_turn_stays(kit: Kit) -> None:
    await finished(kit, "conv_a", "resp_a")
    row = {
        "id": "resp_w",
        "conversation_id": "conv_a",
        "place": 1,
        "if_running": "queue",
        "tenant": "acme",
        "user_id": "ann",
        "created_at": T0,
        "expires_at": T0,
        "background": False,
        "body": "{}",
        "input_items": "[]",
        "asked": "{}",
    }
    await kit.database.write(lambda connection: connection.execute(insert(told.waiting_turn), row))
    kit.clock.advance(40 * DAY)
    assert (await kit.sweep())[Kept.CONVERSATIONS] == 0
    assert await kit.rows_of(told.waiting_turn) == 1


async def test_a_withdrawn_conversation_is_nobodys_and_the_next_sweep_goes_on_with_it(kit: Kit) -> None:
    await finished(kit, "conv_a", "resp_a")
    await kit.database.write(lambda connection: withdraw(connection, "conv_a"))
    with pytest.raises(NotFound):
        await kit.stores.conversations.append("conv_a", 2, [make_entry(2)], [])
    found = await kit.stores.conversations.find("conv_a")
    assert found is not None
    assert found.tenant == ""
    kit.observer.sweeps.append({})
    assert await kit.sweep(days=None) == {}
    assert (await kit.rows_of(told.conversation), await kit.rows_of(told.log_entry)) == (0, 0)


async def test_a_response_goes_when_its_conversation_is_gone(kit: Kit) -> None:
    await finished(kit, "conv_a", "resp_a")
    await kit.stores.conversations.delete("conv_a")
    assert (await kit.sweep())[Kept.RESPONSES] == 0
    kit.clock.advance(40 * DAY)
    assert (await kit.sweep())[Kept.RESPONSES] == 1


async def add_file(kit: Kit, file_id: str) -> SqlFileStore:
    files = SqlFileStore(kit.database, kit.clock)
    file = StoredFile(
        id=file_id,
        tenant="acme",
        user_id="ann",
        filename="a.txt",
        purpose=FilePurpose.FOR_USERS,
        content_type=None,
        size_bytes=1,
        sha256="0",
        created_at=T0,
    )
    await files.add(file, b"x", FileQuota(9, 99))
    return files


async def attach(kit: Kit, base_id: str, file_id: str) -> None:
    row = {
        "knowledge_base_id": base_id,
        "file_id": file_id,
        "tenant": "acme",
        "user_id": "ann",
        "filename": "a.txt",
        "status": "failed",
        "attributes": "{}",
        "created_at": T0,
        "attempts": 1,
        "fence": 0,
    }
    base = make_base(base_id)
    columns = {
        "id": base.id,
        "tenant": base.tenant,
        "name": "",
        "summary": "",
        "topics": "[]",
        "routing_hint": "",
        "routing_keywords": "[]",
        "version": 0,
        "created_at": T0,
        "chunk_count": 0,
        "index_token_count": 0,
        "next_chunk_number": 0,
    }

    def work(connection: Any) -> None:
        connection.execute(insert(attachment.metadata.tables["knowledge_base"]), columns)
        connection.execute(insert(attachment), row)

    await kit.database.write(work)


async def test_a_file_goes_unless_it_is_used_or_was_touched(kit: Kit) -> None:
    for file_id in ("file-base", "file-agent", "file-own", "file-read", "file-free"):
        files = await add_file(kit, file_id)
    await attach(kit, "kb_a", "file-base")
    await attach(kit, file_index_of_agent("acme", "agent_a").id, "file-agent")
    await attach(kit, file_index_of_user("acme", "ann").id, "file-own")
    kit.clock.advance(20 * DAY)
    assert await files.find("file-read") is not None
    kit.clock.advance(20 * DAY)
    assert (await kit.sweep())[Kept.FILES] == 2
    assert sorted(await files.leftovers(T0, 9)) == ["file-free", "file-own"]
    with pytest.raises(NotFound):
        [piece async for piece in files.pieces("file-free")]


async def test_audit_records_have_a_time_of_their_own(kit: Kit) -> None:
    ledger = SqlRestrictedLedger(kit.database)
    record = make_record("audit_a", None, next(iter(AnswerReason)))
    await ledger.settle(settlement(record), SIGNER)
    kit.clock.advance(40 * DAY)
    assert Kept.AUDIT_RECORDS not in await kit.sweep(days=1)
    assert await kit.sweep(days=None, audit=60) == {Kept.AUDIT_RECORDS: 0}
    assert await kit.sweep(days=None, audit=30) == {Kept.AUDIT_RECORDS: 1}


async def test_without_terms_nothing_is_swept_nor_told(kit: Kit) -> None:
    kit.observer.sweeps.append({Kept.FILES: 7})
    assert await kit.sweep(days=None) == {Kept.FILES: 7}


async def test_a_deletion_of_a_person_clears_what_another_has_left_and_counts_their_own_alone(kit: Kit) -> None:
    for name in "abc":
        await finished(kit, f"conv_{name}", f"resp_{name}")
    others = told.conversation.c.id == "conv_c"
    await kit.database.write(lambda c: c.execute(update(told.conversation).where(others).values(user_id="bob")))
    await kit.database.write(lambda c: withdraw(c, "conv_a"))
    people, ann = SqlPersonStore(kit.database, kit.stores.conversations, kit.clock), Person("acme", "ann")
    assert await people.delete_conversations(ann) == 1
    assert await people.delete_conversations(ann) == 0
    left = await kit.database.read(lambda c: c.execute(select(told.conversation.c.id)).scalars().all())
    assert left == ["conv_c"]


async def test_a_conversation_in_which_a_turn_runs_is_left_and_named(kit: Kit) -> None:
    await kit.stores.turns.begin(make_turn(None, "resp_a", "conv_a"))
    people, ann = SqlPersonStore(kit.database, kit.stores.conversations, kit.clock), Person("acme", "ann")
    assert await people.delete_conversations(ann) == 0
    assert await people.delete_rows(PersonalRows.RESPONSES, ann) == 0
    assert {each async for each in people.find_running(ann)} == {"resp_a"}
    assert [each async for each in people.find_running(Person("acme", "bob"))] == []


async def rest_on(kit: Kit, turn_id: str, document_id: str) -> None:
    rests = {"tenant": "acme", "number": 1}
    receipt = {"recorded_at": T0, "turn_id": turn_id, "cache_key": "key", "body": "{}", "signature": ""}

    def store(connection: Connection) -> None:
        connection.execute(insert(restricted.receipt).values(**rests, **receipt))
        connection.execute(insert(restricted.receipt_document).values(**rests, document_id=document_id, sha256=""))

    await kit.database.write(store)


async def test_what_rests_on_a_deleted_document_is_withheld_in_its_turn_and_behind_it(kit: Kit) -> None:
    label = (Label("kb_a", AccessMode.RESTRICTED),)
    for conversation_id, turn_id in (("conv_a", "resp_a"), ("conv_b", "resp_b")):
        begun = make_turn(None, turn_id, conversation_id)
        labelled = begun.response.model_copy(update={"label": label})
        await kit.stores.turns.begin(begun._replace(response=labelled))
        end = make_end(1, turn_id, conversation_id)
        entries = tuple(entry.model_copy(update={"label": label}) for entry in end.entries)
        response = end.response.model_copy(update={"label": label})
        await kit.stores.turns.finish(end._replace(response=response, entries=entries))
    before, after = (make_entry(place, turn_id="resp_later") for place in (2, 3))
    later = [before, after.model_copy(update={"label": label})]
    await kit.stores.conversations.append("conv_a", 2, later, [make_item(2), make_item(3)])
    await rest_on(kit, "resp_a", "doc_x")
    await kit.database.write(lambda connection: withhold_answers(connection, "doc_other"))
    assert await kit.stores.conversations.labels("conv_a") == {"resp_a": label, "resp_later": label}
    await kit.database.write(lambda connection: withhold_answers(connection, "doc_x"))
    labels = await kit.stores.conversations.labels("conv_a")
    assert set(labels) == {"resp_a", "resp_later"}
    everything = {"kb_a": AccessMode.FULL}
    assert not any(may_read(everything, each) for each in labels.values())
    stored = [await kit.stores.turns.find(name) for name in ("resp_a", "resp_b")]
    assert [each is not None and may_read(everything, each.label) for each in stored] == [False, True]
    assert await kit.stores.conversations.labels("conv_b") == {"resp_b": label}


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_what_rests_on_a_document_that_is_deleted_while_the_turn_runs_is_withheld_at_its_end(
    kit: Kit, is_deleted: bool
) -> None:
    label = (Label("kb_a", AccessMode.RESTRICTED),)
    begun = make_turn(None, "resp_a", "conv_a")
    await kit.stores.turns.begin(begun._replace(response=begun.response.model_copy(update={"label": label})))
    await rest_on(kit, "resp_a", "doc_x")
    await kit.database.write(lambda connection: withhold_answers(connection, "doc_x"))
    if is_deleted:
        await kit.stores.turns.delete("resp_a")
    end = make_end(1, "resp_a", "conv_a")
    entries = tuple(entry.model_copy(update={"label": label}) for entry in end.entries)
    response = end.response.model_copy(update={"label": label})
    await kit.stores.turns.finish(end._replace(response=response, entries=entries))
    labels = await kit.stores.conversations.labels("conv_a")
    assert labels["resp_a"] == (*label, Label("doc_x", AccessMode.FULL))
