"""Values and stores for the contracts of conversations, turns and keys."""

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, Engine, event, select, update

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.model_calls import CallsMade, ModelCall, PromptHeader
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import (
    Conversation,
    Exchange,
    FinishedTurn,
    Hold,
    Item,
    NewTurn,
    ResponseStatus,
    StoredResponse,
)
from backend.conversations.domain.served_tools import ServedTools, ServerChoice, ToolSelection
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.sql import tables
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.conversations.sql.waiting_turns import SqlWaitingTurnStore
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.identity.ports import ApiKeyStore
from backend.identity.sql.api_keys import SqlApiKeyStore
from backend.knowledge.domain.tickets import SearchOptions
from backend.migrations.migrate import migrate
from shared.errors import TurnRunning
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.messages import AssistantMessage, HistoryMessage, UserMessage
from shared.models.served_tools import SkillCard
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_state import StoreState
from tests.fakes.store_turns import FakeTurnStore
from tests.fakes.store_waiting import FakeWaitingTurnStore

HEADER = PromptHeader(tools='[{"type":"function"}]', system_prompt="Be brief. 河")
T0 = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)
HOLD = Hold(response_id="resp_a", conversation_id="conv_a", fence=0)
POOL_WAIT_SECONDS = 25.0
"""Many who come at once wait for connections for longer than they do in the product: the machine may be slow."""

KINDS = ("fake", "sqlite", "postgresql")


class Stores(NamedTuple):
    """The stores over one state; `pass_time` lets so many seconds pass for the leases of replicas."""

    conversations: ConversationStore
    turns: TurnStore
    api_keys: ApiKeyStore
    waiting: WaitingTurnStore
    pass_time: Callable[[float], Awaitable[None]]


def database_url(kind: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """Return the address of an empty database that has the newest tables."""
    if kind == "sqlite":
        copied = shutil.copy(request.getfixturevalue("newest_sqlite"), directory)
        return f"sqlite+aiosqlite:///{copied}"
    return request.getfixturevalue("postgres_url")


def empty_database_url(kind: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """Return the address of a database without tables."""
    if kind == "sqlite":
        return f"sqlite+aiosqlite:///{directory}/ballast.db"
    return request.getfixturevalue("empty_postgres_url")


@asynccontextmanager
async def migrated(url: str) -> AsyncGenerator[Database]:
    database = open_database(url, pool_wait_seconds=POOL_WAIT_SECONDS)
    try:
        await migrate(database)
        yield database
    finally:
        await database.close()


def sql_stores(database: Database) -> Stores:
    async def pass_time(seconds: float) -> None:
        await database.write(lambda connection: _age_leases(connection, timedelta(seconds=seconds)))

    return Stores(
        SqlConversationStore(database),
        SqlTurnStore(database),
        SqlApiKeyStore(database),
        SqlWaitingTurnStore(database),
        pass_time,
    )


async def append_next(store: SqlConversationStore) -> None:
    """Append an entry and an item to `conv_a`, as often as another one comes first."""
    while True:
        length = len(await store.log("conv_a"))
        try:
            await store.append("conv_a", length, (make_entry(length),), (make_item(length),))
        except TurnRunning:
            continue
        return


def _age_leases(connection: Connection, age: timedelta) -> None:
    """Let all that the replicas have done be so much older: the clock of the database cannot be set."""
    for row in connection.execute(select(tables.replica)).mappings().all():
        older = {name: row[name] - age for name in ("seen_at", "expires_at", "trusted_from")}
        connection.execute(update(tables.replica).where(tables.replica.c.name == row["name"]).values(older))


@asynccontextmanager
async def open_stores(kind: str, request: pytest.FixtureRequest, directory: Path) -> AsyncGenerator[Stores]:
    if kind == "fake":
        yield fake_stores(StoreState())
        return
    async with migrated(database_url(kind, request, directory)) as database:
        yield sql_stores(database)


def fake_stores(state: StoreState) -> Stores:
    """Return fakes over a state, which has their clock."""

    async def pass_time(seconds: float) -> None:
        state.clock.advance(seconds)

    conversations, turns = FakeConversationStore(state), FakeTurnStore(state)
    return Stores(conversations, turns, FakeApiKeyStore(state), FakeWaitingTurnStore(state), pass_time)


@contextmanager
def deleted_rows() -> Generator[list[int]]:
    """Give how many rows each DELETE meets while the block runs, in whatever database."""
    deleted = list[int]()

    def note(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith("DELETE"):
            deleted.append(cursor.rowcount)

    event.listen(Engine, "after_cursor_execute", note)
    try:
        yield deleted
    finally:
        event.remove(Engine, "after_cursor_execute", note)


def make_conversation(conversation_id: str = "conv_a", **changes: Any) -> Conversation:
    tool = ToolDefinition(name="now", description=None, parameters={"type": "object"}, strict=True)
    conversation = Conversation(
        id=conversation_id,
        tenant="acme",
        user_id="ann",
        created_at=T0,
        metadata={"topic": "河流"},
        log_length=0,
        epoch=0,
        model="model-a",
        instructions="Be brief.\x00",
        functions=(tool,),
        knowledge_base_ids=("kb_a", "kb_b"),
        cache_key="key",
        running_response_id=None,
        latest_response_id=None,
        search=SearchOptions(max_results=3, min_score=0.25),
    )
    return conversation.model_copy(update=changes)


def make_entry(position: int, text: str = "hello", turn_id: str = "resp_a") -> Entry:
    message: HistoryMessage = UserMessage(content=text) if position % 2 == 0 else AssistantMessage(text=text)
    kind = EntryKind.USER if position % 2 == 0 else EntryKind.ASSISTANT
    return Entry(position=position, epoch=0, turn_id=turn_id, kind=kind, message=message, created_at=T0)


def make_item(sequence: int, response_id: str | None = "resp_a", item_id: str = "") -> Item:
    name = item_id or f"msg_{sequence}"
    return Item(id=name, sequence=sequence, response_id=response_id, body={"type": "message", "id": name, "a": 1})


def make_response(response_id: str = "resp_a", conversation_id: str = "conv_a", **changes: Any) -> StoredResponse:
    response = StoredResponse(
        id=response_id,
        tenant="acme",
        user_id="ann",
        conversation_id=conversation_id,
        created_at=T0,
        status=ResponseStatus.IN_PROGRESS,
        background=False,
        body={"id": response_id, "output": [], "z": 1, "a": [None, 1.5, "é"]},
        input_items=({"type": "message", "id": "msg_0"},),
        log_end=None,
        items_end=None,
        last_event=0,
        replica="replica-a",
    )
    return response.model_copy(update=changes)


def make_turn(length: int | None = None, response_id: str = "resp_a", conversation_id: str = "conv_a") -> NewTurn:
    """One user message on a log of that length; None starts the conversation."""
    start = length or 0
    conversation = make_conversation(
        conversation_id, log_length=start + 1, running_response_id=response_id, latest_response_id=response_id
    )
    return NewTurn(
        conversation=conversation,
        expected_log_length=length,
        response=make_response(response_id, conversation_id),
        entries=(make_entry(start, f"question {response_id}", response_id),),
        items=(make_item(start, response_id),),
    )


def make_exchange(*positions: int, **changes: Any) -> Exchange:
    """Entries at these positions of a log; the newest event is number 2."""
    entries = tuple(make_entry(position) for position in positions)
    return Exchange(entries=entries, output=(), last_event=2)._replace(**changes)


def make_end(length: int, response_id: str = "resp_a", conversation_id: str = "conv_a") -> FinishedTurn:
    """One answer on a log of that length."""
    response = make_response(
        response_id,
        conversation_id,
        status=ResponseStatus.COMPLETED,
        body={"id": response_id, "output": [{"type": "message"}]},
        log_end=length + 1,
        items_end=length + 1,
        last_event=7,
    )
    entries = (make_entry(length, f"answer {response_id}", response_id),)
    return FinishedTurn(response=response, entries=entries, items=(make_item(length, response_id),))


FIXED_TOOLS = ServedTools(
    own=ToolSelection(servers=(ServerChoice(server="jira", tools=("search",)),)),
    selection=ToolSelection(servers=(ServerChoice(server="jira"),), skills=("letters",)),
    tools=(
        ServedTool(
            definition=ToolDefinition(
                name="jira__search", description="Search.", parameters={"z": 1, "type": "object"}, strict=None
            ),
            server="jira",
            tool="search",
            accepts_restricted=True,
        ),
    ),
    skills=(SkillCard(name="letters", description="Write letters.", accepts_restricted=False),),
    missing=("wiki",),
)


def make_call(number: int, **changes: Any) -> ModelCall:
    call = ModelCall(call=number, epoch=0, epoch_reason=None, log_end=number, header=HEADER)
    return call.model_copy(update=changes)


def made(*calls: ModelCall, sent: SentPrompt | None = None) -> CallsMade:
    return CallsMade(conversation_id="conv_a", response_id="resp_a", calls=calls, sent=sent)
