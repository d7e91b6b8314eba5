"""Two who write at once both keep what they wrote: whatever one does between two accesses of the other.

A write changes what its caller named and nothing else, or it has a condition on what was read before.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole
from backend.agents.services.agent_files import AgentFiles
from backend.agents.services.agents import AgentCatalogue
from backend.agents.sql.store import SqlAgentStore
from backend.conversations.sql.conversations import SqlConversationStore
from backend.files.domain import FilePurpose, FileQuota, StoredFile
from backend.files.services import Files
from backend.files.sql.files import SqlFileStore
from backend.foundation.sql.database import Database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.attachments import AttachedQuery, Attachment
from backend.knowledge.domain.file_indexes import file_index_of_agent
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.retention.domain import Person
from backend.retention.sql.people import SqlPersonStore
from backend.search.domain.chunks import CHUNKS_AT_ONCE
from backend.streams.redis.event_log import RedisEventLog
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from backend.vector_stores.services.file_indexes import FileIndexes
from backend.vector_stores.services.store_access import drop_file
from shared.errors import Conflict, NotFound, PayloadTooLarge, PermissionDenied, Unavailable
from shared.models.safe_summary import RestrictedGrade
from tests.contract.event_cases import RETENTION_SECONDS, make_events
from tests.contract.knowledge_cases import T0, indexed, make_base, make_document, put
from tests.contract.store_cases import database_url, migrated
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.clock import FakeClock
from tests.fakes.interrupted_database import HeldDatabase, InterruptedDatabase
from tests.fakes.openai_house import TurnHouse
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.supervision import make_supervisor
from tests.servers.valkey import patient_client

Act = Callable[[Any], Awaitable[object]]
ANN, BOB = (Caller(user_id=name, tenant="acme", role=KeyRole.USER) for name in ("ann", "bob"))
NO_DEFINITION = AgentDefinition.model_validate({})


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield opened


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[Database]:
    async with migrated(postgres_url) as opened:
        yield opened


async def interleave(database: Database, act: Act, other: Act, check: Callable[[], Awaitable[None]]) -> None:
    """Let another act before each access of one who acts, each time anew."""
    for at in count():
        interrupted = InterruptedDatabase(database, at, lambda: other(database))
        await act(interrupted)
        if not interrupted.was_interrupted:
            assert at, "nothing was accessed"
            return
        await check()


def catalogue(database: Any) -> KnowledgeCatalogue:
    store = knowledge_store(database, FakeClock())
    return KnowledgeCatalogue(store, TurnHouse().descriptions, FakeClock(), RestrictedGrade.OPEN)


def agent_catalogue(database: Any) -> AgentCatalogue:
    clock, knowledge, files = FakeClock(), knowledge_store(database, FakeClock()), SqlFileStore(database, FakeClock())
    file_indexes = FileIndexes(knowledge, SqlAttachmentStore(database, clock), files, asyncio.Event(), clock)
    agent_files = AgentFiles(Files(files, clock, FileQuota()), file_indexes)
    models, tools = TurnHouse().services.models, ToolCatalogue(FakeModelLister(), clock)
    return AgentCatalogue(SqlAgentStore(database), knowledge, models, tools, agent_files, clock)


def uploaded(file_id: str, user_id: str = "ann") -> StoredFile:
    return StoredFile(
        id=file_id,
        tenant="acme",
        user_id=user_id,
        filename="a.txt",
        purpose=FilePurpose.FOR_USERS,
        content_type=None,
        size_bytes=4,
        sha256="0",
        created_at=T0,
    )


async def base_with_members(database: Database) -> None:
    store = knowledge_store(database, FakeClock())
    await store.create_base(make_base(), "ann")
    await store.set_member("kb_a", "bob", MemberRole.EDITOR)


async def test_an_editor_who_sends_what_they_have_read_takes_nothing_back_that_an_owner_sets(
    database: Database,
) -> None:
    await base_with_members(database)
    grades = iter([RestrictedGrade.STRICT, None] * 20)
    before: list[RestrictedGrade | None] = [None]

    async def act(database: Any) -> None:
        with suppress(PermissionDenied):
            await catalogue(database).describe(BOB, "kb_a", {"restricted_grade": before[-1], "name": "New"})

    async def other(database: Any) -> None:
        before.append(next(grades))
        await catalogue(database).describe(ANN, "kb_a", {"restricted_grade": before[-1]})

    async def check() -> None:
        assert (await catalogue(database).find(ANN, "kb_a")).base.restricted_grade == before[-1]

    await interleave(database, act, other, check)


@pytest.mark.parametrize("chunk_count", [1, 2 * CHUNKS_AT_ONCE + 1])
async def test_a_document_that_is_replaced_keeps_the_attributes_that_somebody_sets(
    database: Database, chunk_count: int
) -> None:
    await base_with_members(database)
    numbers = count()
    texts = [f"rivers {number}" for number in range(chunk_count)]
    document = await put(knowledge_store(database, FakeClock()), "a", texts)
    newest: list[int] = []

    async def act(database: Any) -> None:
        document, body, chunks = make_document("a", texts)
        await knowledge_store(database, FakeClock()).put_document(document, body, indexed(chunks))

    async def other(database: Any) -> None:
        newest.append(next(numbers))
        attachments = SqlAttachmentStore(database, FakeClock())
        assert await attachments.set_attributes("kb_a", document.id, {"number": newest[-1]})

    async def check() -> None:
        found = await knowledge_store(database, FakeClock()).find_document("kb_a", "a")
        assert found is not None
        assert found.attributes == {"number": newest[-1]}

    await interleave(database, act, other, check)


async def test_who_detaches_a_file_deletes_no_document_that_got_its_name(database: Database) -> None:
    await base_with_members(database)
    store, attachments = knowledge_store(database, FakeClock()), SqlAttachmentStore(database, FakeClock())
    numbers = count()

    async def attach() -> None:
        await store.delete_document("kb_a", "a.txt")
        file_id = f"file-{next(numbers)}"
        new = Attachment(
            knowledge_base_id="kb_a",
            file_id=file_id,
            tenant="acme",
            user_id="ann",
            filename="a.txt",
            attributes={},
            created_at=T0,
        )
        await attachments.attach([new])
        taken = await attachments.take(None, 60.0)
        assert taken is not None
        document, body, chunks = make_document("", ["rivers"], document_id=f"doc_{file_id}")
        await store.put_document(document, body, indexed(chunks), taken.claim)
        attached.append(file_id)

    async def act(database: Any) -> None:
        await attach()
        await drop_file(
            knowledge_store(database, FakeClock()), SqlAttachmentStore(database, FakeClock()), "kb_a", attached[-1]
        )

    async def other(database: Any) -> None:
        await store.delete_document("kb_a", "a.txt")
        await put(store, "a.txt", ["roads"], document_id=f"doc_other_{next(numbers)}")

    async def check() -> None:
        found = await store.find_document("kb_a", "a.txt")
        assert found is not None
        assert found.file_id is None

    attached: list[str] = []
    await interleave(database, act, other, check)


async def test_an_editor_gives_an_agent_no_base_back_that_an_owner_takes_from_it(database: Database) -> None:
    store, agents = SqlAgentStore(database), agent_catalogue(database)
    await knowledge_store(database, FakeClock()).create_base(make_base(), "ann")
    with_base = AgentDefinition.model_validate({"knowledge_base_ids": ["kb_a"]})
    known, _ = await agents.put(ANN, "helper", with_base)
    await store.set_member(known.agent.id, "bob", AgentRole.EDITOR)

    async def act(database: Any) -> None:
        await agents.put(ANN, "helper", with_base)
        edited = with_base.model_copy(update={"instructions": "Be brief."})
        with suppress(NotFound):
            await agent_catalogue(database).put(BOB, "helper", edited)

    async def other(database: Any) -> None:
        await agents.put(ANN, "helper", NO_DEFINITION)

    async def check() -> None:
        assert (await agents.find(ANN, "helper")).agent.definition.base_ids == ()

    await interleave(database, act, other, check)


async def test_the_files_that_users_of_an_agent_search_are_those_that_it_has(database: Database) -> None:
    agents, files = agent_catalogue(database), SqlFileStore(database, FakeClock())
    for file_id in ("file-a", "file-b"):
        await files.add(uploaded(file_id), b"text", FileQuota())
    first, second = (AgentDefinition.model_validate({"file_ids": [file_id]}) for file_id in ("file-a", "file-b"))
    known, _ = await agents.put(ANN, "helper", NO_DEFINITION)

    async def act(database: Any) -> None:
        await agent_catalogue(database).put(ANN, "helper", first)

    async def other(database: Any) -> None:
        await agents.put(ANN, "helper", second)

    async def check() -> None:
        file_index = file_index_of_agent("acme", known.agent.id)
        found = await SqlAttachmentStore(database, FakeClock()).list_attached(
            AttachedQuery(file_index.id, 10, descending=False)
        )
        definition = (await agents.find(ANN, "helper")).agent.definition
        assert {file.id for file in found} <= set(definition.file_ids)

    await interleave(database, act, other, check)


async def test_a_base_was_last_used_when_the_latest_replica_says(database: Database) -> None:
    await base_with_members(database)
    ahead, behind = FakeClock(), FakeClock()
    ahead.advance(60)
    for clock in (ahead, behind):
        await SqlAttachmentStore(database, clock).note_active(["kb_a"])
    (binding,) = await knowledge_store(database, FakeClock()).bindings("acme", "ann", None)
    assert binding.base.last_active_at == ahead.now()


def count_waiting(connection: Connection) -> int:
    return connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar_one()


@asynccontextmanager
async def held(database: Database, first: Act, second: Act) -> AsyncGenerator[list[Any]]:
    """Begin two writes, of which the first ends once the second waits for it, or has ended without; give what they did.

    A write that is refused gives its error.
    """
    slow = HeldDatabase(database)

    async def outcome(act: Act, database: Any) -> Any:
        try:
            return await act(database)
        except (Conflict, PayloadTooLarge) as error:
            return error

    async with asyncio.TaskGroup() as tasks:
        begun = tasks.create_task(outcome(first, slow))
        await slow.is_held.wait()
        other = tasks.create_task(outcome(second, database))
        while not other.done() and not await database.read(count_waiting):  # noqa: ASYNC110 -- no event tells it
            await asyncio.sleep(0.01)
        slow.may_end.set()
    yield [begun.result(), other.result()]


async def test_two_uploads_at_once_keep_to_the_quota_of_their_user(postgres: Database) -> None:
    def upload(file_id: str) -> Act:
        return lambda database: SqlFileStore(database, FakeClock()).add(uploaded(file_id), b"text", FileQuota(files=1))

    async with held(postgres, upload("file-a"), upload("file-b")) as (_, refused):
        assert isinstance(refused, PayloadTooLarge)


async def test_two_agents_at_once_keep_to_the_limit_of_their_tenant(postgres: Database) -> None:
    def create(name: str) -> Act:
        agent = Agent(id=f"agent_{name}", tenant="acme", name=name, created_at=T0, definition=NO_DEFINITION)
        return lambda database: SqlAgentStore(database).create(agent, "ann", 1)

    async with held(postgres, create("a"), create("b")) as (_, refused):
        assert isinstance(refused, Conflict)


async def test_two_owners_who_are_erased_at_once_leave_no_agent_without_an_owner(postgres: Database) -> None:
    store = SqlAgentStore(postgres)
    agent = Agent(id="agent_a", tenant="acme", name="a", created_at=T0, definition=NO_DEFINITION)
    await store.create(agent, "ann", 1)
    await store.set_member("agent_a", "bob", AgentRole.OWNER)

    def leave(user_id: str) -> Act:
        return lambda database: SqlPersonStore(database, SqlConversationStore(database), FakeClock()).leave_agents(
            Person("acme", user_id)
        )

    async with held(postgres, leave("ann"), leave("bob")) as left:
        assert left == [1, 0]
    assert await store.members("agent_a") == {"bob": AgentRole.OWNER}


class LatePipeline:
    """Commands whose answers come when they may."""

    def __init__(self, pipeline: Any, may_answer: asyncio.Event) -> None:
        self._pipeline = pipeline
        self._may_answer = may_answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def __len__(self) -> int:
        return len(self._pipeline)

    async def execute(self, *given: Any, **options: Any) -> list[object]:
        answers = await self._pipeline.execute(*given, **options)
        await self._may_answer.wait()
        return answers


class InterruptedClient:
    """A client of Valkey whose writes are answered late, and before whose command of a number another acts."""

    def __init__(self, client: Any, at: int, other: Callable[[], Awaitable[object]]) -> None:
        self._client = client
        self._other = other
        self._left = at
        self.has_failed = asyncio.Event()
        self.was_interrupted = False

    def pipeline(self, transaction: bool = True) -> Any:
        return LatePipeline(self._client.pipeline(), self.has_failed)

    def register_script(self, script: str) -> Any:
        return partial(self._counted, self._client.register_script(script))

    def __getattr__(self, name: str) -> Any:
        return partial(self._counted, getattr(self._client, name))

    async def _counted(self, command: Any, *given: Any, **options: Any) -> Any:
        self._left -= 1
        if self._left == -1:
            self.was_interrupted = True
            await self._other()
        return await command(*given, **options)


async def test_who_gives_a_stream_up_deletes_none_that_another_process_has_taken_over(valkey_url: str) -> None:
    client = patient_client(valkey_url)
    there = RedisEventLog(client, make_supervisor(), RETENTION_SECONDS)
    for at in count():

        async def take_over(name: str = f"resp_{at}") -> None:
            async for _ in there.take_over(name, 1):
                pass
            await there.append(name, make_events(3, 1))

        interrupted: Any = InterruptedClient(client, at, take_over)
        here = RedisEventLog(interrupted, make_supervisor(), RETENTION_SECONDS, opening_seconds=0.0)
        with pytest.raises(Unavailable):
            await here.append(f"resp_{at}", make_events(0, 3))
        interrupted.has_failed.set()
        await here.close(f"resp_behind_{at}")  # which is written behind all that came of the failure
        await here.aclose()
        if not interrupted.was_interrupted:
            break
        elsewhere = RedisEventLog(client, make_supervisor(), RETENTION_SECONDS)
        assert await elsewhere.exists(f"resp_{at}")
    await there.aclose()
    await client.aclose()
