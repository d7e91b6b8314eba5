"""Conversations, their logs and their items in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from backend.adapters.sql import schema
from backend.adapters.sql.codec import (
    EntryRow,
    conversation_parameters,
    to_conversation,
    to_entry,
    to_item,
    to_json,
)
from backend.adapters.sql.database import Database
from backend.adapters.sql.writing import is_free, positions_are_free, refusal, write_rows
from backend.domain.conversation_log import Entry
from backend.domain.responses import Conversation, Item
from shared.errors import NotFound, TurnRunning

_conversation = schema.conversation
_entry = schema.log_entry
_item = schema.item
_ENTRY_COLUMNS = tuple(_entry.c[name] for name in EntryRow._fields)
_ITEM_COLUMNS = (_item.c.id, _item.c.sequence, _item.c.response_id, _item.c.body)


class SqlConversationStore:
    """The `ConversationStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, conversation: Conversation, entries: Sequence[Entry], items: Sequence[Item]) -> None:
        """Store a new conversation with what it begins with."""

        def work(connection: Connection) -> None:
            connection.execute(insert(_conversation), conversation_parameters(conversation))
            write_rows(connection, conversation.id, entries, items)

        await self._database.write(work)

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return the conversation, or None."""

        def work(connection: Connection) -> Conversation | None:
            query = select(_conversation).where(_conversation.c.id == conversation_id)
            row = connection.execute(query).mappings().first()
            return to_conversation(row) if row is not None else None

        return await self._database.read(work)

    async def set_metadata(self, conversation_id: str, metadata: dict[str, str]) -> None:
        """Replace the caller's metadata; no effect when there is no such conversation."""

        def work(connection: Connection) -> None:
            change = update(_conversation).where(_conversation.c.id == conversation_id)
            connection.execute(change.values(metadata=to_json(metadata)))

        await self._database.write(work)

    async def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its log and items; one that is not there is no error."""

        def work(connection: Connection) -> None:
            free = (_conversation.c.id == conversation_id) & _conversation.c.running_response_id.is_(None)
            if connection.execute(delete(_conversation).where(free)).rowcount:
                return
            error = refusal(connection, conversation_id)
            if isinstance(error, TurnRunning):
                raise error

        await self._database.write(work)

    async def append(
        self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry], items: Sequence[Item]
    ) -> None:
        """Append outside of a turn."""

        def work(connection: Connection) -> None:
            change = update(_conversation).where(is_free(conversation_id, expected_log_length))
            length = expected_log_length + len(entries)
            if not connection.execute(change.values(log_length=length)).rowcount:
                raise refusal(connection, conversation_id)
            with positions_are_free():
                write_rows(connection, conversation_id, entries, items)

        await self._database.write(work)

    async def log(self, conversation_id: str, end: int | None = None) -> tuple[Entry, ...]:
        """Return the entries at positions below `end`, in order."""

        def work(connection: Connection) -> Sequence[EntryRow]:
            query = select(*_ENTRY_COLUMNS).where(_entry.c.conversation_id == conversation_id)
            if end is not None:
                query = query.where(_entry.c.position < end)
            return [EntryRow(*row) for row in connection.execute(query.order_by(_entry.c.position))]

        rows = await self._database.read(work)
        return tuple(to_entry(conversation_id, row) for row in rows)

    async def items(self, conversation_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Item, ...]:
        """Return up to `limit` items behind the item `after` in the given order."""

        def work(connection: Connection) -> tuple[Item, ...]:
            query = _items_of(conversation_id)
            if after is not None:
                place = _sequence_of(connection, conversation_id, after)
                query = query.where(_item.c.sequence < place if descending else _item.c.sequence > place)
            order = _item.c.sequence.desc() if descending else _item.c.sequence
            return _read_items(connection, conversation_id, query.order_by(order).limit(limit))

        return await self._database.read(work)

    async def all_items(self, conversation_id: str, end: int) -> tuple[Item, ...]:
        """Return the items with a sequence below `end`, in order."""

        def work(connection: Connection) -> tuple[Item, ...]:
            query = _items_of(conversation_id).where(_item.c.sequence < end).order_by(_item.c.sequence)
            return _read_items(connection, conversation_id, query)

        return await self._database.read(work)

    async def find_item(self, conversation_id: str, item_id: str) -> Item | None:
        """Return one item, or None."""

        def work(connection: Connection) -> Item | None:
            query = _items_of(conversation_id).where(_item.c.id == item_id)
            return next(iter(_read_items(connection, conversation_id, query)), None)

        return await self._database.read(work)


def _items_of(conversation_id: str) -> Select[Any, Any, Any, Any]:
    return select(*_ITEM_COLUMNS).where(_item.c.conversation_id == conversation_id)


def _read_items(connection: Connection, conversation_id: str, query: Select[Any, Any, Any, Any]) -> tuple[Item, ...]:
    return tuple(to_item(conversation_id, row) for row in connection.execute(query).mappings())


def _sequence_of(connection: Connection, conversation_id: str, item_id: str) -> int:
    named = (_item.c.conversation_id == conversation_id) & (_item.c.id == item_id)
    place = connection.execute(select(_item.c.sequence).where(named)).scalar()
    if place is None:
        raise NotFound("There is no such item in this conversation.", param="after")
    return place
