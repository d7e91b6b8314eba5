"""Conversations, their logs and their items in a SQL database."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import get_args

from sqlalchemy import ClauseElement, Connection, Integer, bindparam, delete, func, insert, select, update

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.members import ConversationRole, People
from backend.conversations.domain.responses import Conversation, Item, OpenedConversation, OwnedItem, Removal, SeenPoint
from backend.conversations.sql import tables
from backend.conversations.sql.codec import (
    Parameters,
    conversation_parameters,
    item_parameters,
    members_json,
    to_conversation,
    to_entries,
    to_item,
    to_json,
    to_members,
)
from backend.conversations.sql.deletion import delete_withdrawn, withdraw, withdrawn_ids
from backend.conversations.sql.listed import read_page
from backend.conversations.sql.shared_statements import HAS_LENGTH, IS_CONVERSATION, IS_FREE, guard_error, write_rows
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Row, Statement
from backend.knowledge.domain.labels import Labels, decode_labels
from shared.errors import Conflict, NotFound, Unavailable

_conversation = tables.conversation
_entry = tables.log_entry
_item = tables.item
_removed = tables.removed_item
_seen = tables.seen_point
_sequence = _item.c.sequence

_INSERT = Statement(insert(_conversation))
_FIND = Statement(select(_conversation).where(IS_CONVERSATION))


def _select_owned(dialect: Dialect) -> ClauseElement:
    """Select these items from all conversations of a tenant that are a user's, or are shared with anybody."""
    may_be_read = (_conversation.c.user_id == bindparam("where_user")) | _conversation.c.members.is_not(None)
    columns = (_item.c.conversation_id, _item.c.id, _sequence, _item.c.response_id, _item.c.body)
    return (
        select(*columns, _conversation.c.tenant, _conversation.c.user_id, _conversation.c.members)
        .join(_conversation, _conversation.c.id == _item.c.conversation_id)
        .where(_conversation.c.tenant == bindparam("where_tenant"), may_be_read, is_among(_item.c.id, "ids", dialect))
        .order_by(_item.c.conversation_id)
    )


_people = select(_conversation.c.tenant, _conversation.c.user_id, _conversation.c.members).where(IS_CONVERSATION)
_PEOPLE = Statement(_people)
# Held until the members are written, so that no change of another owner is lost.
_HOLD_PEOPLE = Statement(_people.with_for_update())
_newest_sequence = select(func.max(_sequence)).where(_item.c.conversation_id == _conversation.c.id).scalar_subquery()
_newest_removed = (
    select(func.max(_removed.c.sequence)).where(_removed.c.conversation_id == _conversation.c.id).scalar_subquery()
)
_open = (
    select(
        _conversation,
        _newest_sequence.label("newest_sequence"),
        _newest_removed.label("newest_removed"),
        _seen.c.digest.label("seen"),
        _seen.c.log_end.label("seen_end"),
    )
    .outerjoin(_seen, _seen.c.response_id == _conversation.c.latest_response_id)
    .where(IS_CONVERSATION)
)
_OPEN = Statement(_open)
_SET = Statement(update(_conversation).where(IS_CONVERSATION))
_GROW = Statement(update(_conversation).where(IS_CONVERSATION, IS_FREE, HAS_LENGTH))

_ENTRY_COLUMNS = (
    _entry.c.position,
    _entry.c.epoch,
    _entry.c.turn_id,
    _entry.c.kind,
    _entry.c.content,
    _entry.c.created_at,
    _entry.c.label,
    _entry.c.reset,
    _entry.c.context,
    _entry.c.reset_additions,
    _entry.c.placed,
)
_log = select(*_ENTRY_COLUMNS).where(_entry.c.conversation_id == bindparam("where_id")).order_by(_entry.c.position)
_LOG = Statement(_log)
_LOG_BELOW = Statement(_log.where(_entry.c.position < bindparam("where_end")))

_LABELS = Statement(
    select(_entry.c.turn_id, _entry.c.label).where(
        _entry.c.conversation_id == bindparam("where_id"), _entry.c.label.is_not(None)
    )
)

_LABELS_OF_TURNS = {
    dialect: Statement(
        select(_entry.c.turn_id, _entry.c.label).where(tables.HAS_LABEL, is_among(_entry.c.turn_id, "ids", dialect))
    )
    for dialect in get_args(Dialect)
}

_items = select(_item.c.id, _sequence, _item.c.response_id, _item.c.body).where(
    _item.c.conversation_id == bindparam("where_id")
)
_is_above = _sequence > bindparam("where_place")
_is_below = _sequence < bindparam("where_place")
_page_size = bindparam("where_limit", type_=Integer)
_ITEMS_BELOW = Statement(_items.where(_is_below).order_by(_sequence))
_FIND_ITEM = Statement(_items.where(_item.c.id == bindparam("where_item_id")))
_PAGE_UP = Statement(_items.where(_is_above).order_by(_sequence).limit(_page_size))
_PAGE_DOWN = Statement(_items.where(_is_below).order_by(_sequence.desc()).limit(_page_size))

_DELETE_ITEM = Statement(
    delete(_item).where(_item.c.conversation_id == bindparam("where_id"), _sequence == bindparam("where_place"))
)
_KEEP_REMOVED = Statement(insert(_removed))
_REMOVED_LATER = Statement(
    select(_removed.c.id, _removed.c.sequence, _removed.c.response_id, _removed.c.body)
    .where(
        _removed.c.conversation_id == bindparam("where_id"),
        _removed.c.sequence < bindparam("where_place"),
        _removed.c.removed_at >= bindparam("where_end", type_=Integer),
    )
    .order_by(_removed.c.sequence)
)
_OWNED = {dialect: Statement(_select_owned(dialect)) for dialect in get_args(Dialect)}
_BEFORE_ALL = -1
_BEHIND_ALL = 2**31 - 1


class SqlConversationStore:
    """Implements `ConversationStore` with a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        conversation: Conversation,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Store a new conversation with what it begins with."""

        def work(connection: Connection) -> None:
            take_key(connection, claim)
            _INSERT.change(connection, conversation_parameters(conversation))
            write_rows(connection, conversation.id, entries, items)

        await self._database.write(work)

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return the conversation, or None."""
        row = await self._database.find(_FIND, {"where_id": conversation_id})
        return to_conversation(row) if row is not None else None

    async def list_readable(
        self, tenant: str, user_id: str, *, after: str | None, limit: int, descending: bool
    ) -> tuple[Conversation, ...]:
        """Return up to `limit` conversations that a user may read, behind `after`."""
        return await self._database.read(
            lambda connection: read_page(connection, tenant, user_id, after, limit, descending=descending)
        )

    async def open(self, conversation_id: str, needs_log: Callable[[Conversation], bool]) -> OpenedConversation | None:
        """Return the conversation, and its log where `needs_log` asks for it, in at most two statements."""

        def work(connection: Connection) -> OpenedConversation | None:
            row = _OPEN.first(connection, {"where_id": conversation_id})
            opened = _to_opened(row) if row is not None else None
            if opened is None or not needs_log(opened.conversation):
                return opened
            log = _read_log(connection, conversation_id, opened.conversation.log_length)
            return opened.model_copy(update={"log": log})

        return await self._database.read(work)

    async def people(self, conversation_id: str) -> People | None:
        """Return the members of the conversation, or None."""
        row = await self._database.find(_PEOPLE, {"where_id": conversation_id})
        return _to_people(row) if row is not None else None

    async def set_member(self, conversation_id: str, user_id: str, role: ConversationRole, most: int) -> bool:
        """Share the conversation with a user, or change their role; return whether they are new."""

        def work(connection: Connection) -> bool:
            row = _HOLD_PEOPLE.first(connection, {"where_id": conversation_id})
            if row is None:
                raise NotFound("The conversation was deleted meanwhile.", param="conversation_id")
            others = _to_people(row).others or {}
            if user_id not in others and len(others) >= most:
                message = f"The conversation is shared with {most} people, which is the most; remove one first."
                raise Conflict(message, param="user_id")
            changed = members_json({**others, user_id: role})
            _SET.change(connection, {"where_id": conversation_id, "members": changed})
            return user_id not in others

        return await self._database.write(work)

    async def remove_member(self, conversation_id: str, user_id: str) -> bool:
        """Take the conversation from a user; False where they had no role in it."""

        def work(connection: Connection) -> bool:
            row = _HOLD_PEOPLE.first(connection, {"where_id": conversation_id})
            others = dict(_to_people(row).others or {}) if row is not None else {}
            if others.pop(user_id, None) is None:
                return False
            _SET.change(connection, {"where_id": conversation_id, "members": members_json(others)})
            return True

        return await self._database.write(work)

    async def set_metadata(self, conversation_id: str, metadata: dict[str, str]) -> None:
        """Replace the caller's metadata; no effect when there is no such conversation."""
        change: Parameters = {"where_id": conversation_id, "metadata": to_json(metadata)}
        await self._database.write(lambda connection: _SET.change(connection, change))

    async def delete(self, conversation_id: str) -> None:
        """Withdraw it in one transaction, then delete its rows; no effect when there is no such conversation."""
        for each in await self._database.write(lambda connection: withdraw(connection, conversation_id)):
            # It is gone for all callers now: who sweeps deletes what may be left of it.
            with suppress(Unavailable):
                await self.clear(each)

    async def find_left_of_deleted(self) -> Sequence[str]:
        """Find those that are withdrawn."""
        return await self._database.read(withdrawn_ids)

    async def clear(self, conversation_id: str) -> None:
        """Delete rows in short transactions: a row may hold megabytes, and SQLite has one writer."""
        await delete_withdrawn(self._database, conversation_id)

    async def append(
        self,
        conversation_id: str,
        expected_log_length: int,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Append entries and items outside of a turn."""

        def work(connection: Connection) -> None:
            take_key(connection, claim)
            growth = {
                "where_id": conversation_id,
                "where_log_length": expected_log_length,
                "log_length": expected_log_length + len(entries),
            }
            if not _GROW.change(connection, growth):
                raise guard_error(connection, conversation_id)
            write_rows(connection, conversation_id, entries, items)

        await self._database.write(work)

    async def remove(self, conversation_id: str, expected_log_length: int, removal: Removal) -> None:
        """Take an item out, and append the entries that do so."""
        growth: Parameters = {
            "where_id": conversation_id,
            "where_log_length": expected_log_length,
            "log_length": expected_log_length + len(removal.entries),
            "epoch": removal.epoch,
        }
        (kept,) = item_parameters(conversation_id, [removal.item])

        def work(connection: Connection) -> None:
            if not _GROW.change(connection, growth):
                raise guard_error(connection, conversation_id)
            _DELETE_ITEM.change(connection, {"where_id": conversation_id, "where_place": removal.item.sequence})
            _KEEP_REMOVED.change(connection, {**kept, "removed_at": expected_log_length})
            write_rows(connection, conversation_id, removal.entries, ())

        await self._database.write(work)

    async def log(self, conversation_id: str, end: int | None = None) -> tuple[Entry, ...]:
        """Return the entries at positions below `end`, in order."""
        return await self._database.read(lambda connection: _read_log(connection, conversation_id, end))

    async def labels(self, conversation_id: str) -> Mapping[str, Labels]:
        """Return the label of each turn that has one, by the turn's id."""
        where = {"where_id": conversation_id}
        return await self._database.read(
            lambda connection: {row["turn_id"]: decode_labels(row["label"]) for row in _LABELS.rows(connection, where)}
        )

    async def labels_of_turns(self, turn_ids: Sequence[str]) -> Mapping[str, Labels]:
        """Return the labels of those of these turns that have one and stand in a log, in whatever conversation."""

        def work(connection: Connection) -> Mapping[str, Labels]:
            dialect = connection.dialect.name
            rows = _LABELS_OF_TURNS[dialect].rows(connection, {"ids": list_parameter(turn_ids, dialect)})
            return {row["turn_id"]: decode_labels(row["label"]) for row in rows}

        return await self._database.read(work)

    async def items(self, conversation_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Item, ...]:
        """Return up to `limit` items behind the item `after` in the given order."""

        def work(connection: Connection) -> tuple[Item, ...]:
            place = _BEHIND_ALL if descending else _BEFORE_ALL
            if after is not None:
                place = _sequence_of(connection, conversation_id, after)
            page: Parameters = {"where_place": place, "where_limit": limit}
            return _read_items(connection, _PAGE_DOWN if descending else _PAGE_UP, conversation_id, page)

        return await self._database.read(work)

    async def all_items(self, conversation_id: str, end: int, log_end: int) -> tuple[Item, ...]:
        """Return the items with a sequence below `end` that were there when the log had the length `log_end`."""

        def work(connection: Connection) -> tuple[Item, ...]:
            there = _read_items(connection, _ITEMS_BELOW, conversation_id, {"where_place": end})
            later: Parameters = {"where_place": end, "where_end": log_end}
            removed = _read_items(connection, _REMOVED_LATER, conversation_id, later)
            # A release that keeps no removed items may have given the sequence of one again.
            by_sequence = {item.sequence: item for item in (*there, *removed)}
            return tuple([by_sequence[sequence] for sequence in sorted(by_sequence)])

        return await self._database.read(work)

    async def find_owned_items(self, tenant: str, user_id: str, ids: Sequence[str]) -> tuple[OwnedItem, ...]:
        """Return those of these items that are in conversations of a user, each once."""

        def work(connection: Connection) -> tuple[OwnedItem, ...]:
            dialect = connection.dialect.name
            owner = {"where_tenant": tenant, "where_user": user_id}
            rows = _OWNED[dialect].rows(connection, {**owner, "ids": list_parameter(ids, dialect)})
            readable = [row for row in rows if user_id in _to_people(row).roles]
            return tuple({row["id"]: _to_owned(row) for row in readable}.values())

        return await self._database.read(work)

    async def find_item(self, conversation_id: str, item_id: str) -> Item | None:
        """Return one item, or None."""
        return await self._database.read(lambda connection: _find_item(connection, conversation_id, item_id))


_BESIDES = ("newest_sequence", "newest_removed", "seen", "seen_end")


def _to_opened(row: Row) -> OpenedConversation:
    """Read the row of a conversation that is opened, without its log."""
    found = to_conversation({name: value for name, value in row.items() if name not in _BESIDES})
    seen = SeenPoint(digest=row["seen"], log_end=row["seen_end"]) if row["seen"] is not None else None
    sequences = [sequence for sequence in (row["newest_sequence"], row["newest_removed"]) if sequence is not None]
    return OpenedConversation(conversation=found, log=(), next_sequence=max(sequences, default=-1) + 1, seen=seen)


def _to_people(row: Row) -> People:
    return People(tenant=row["tenant"], creator_id=row["user_id"], others=to_members(row["members"]))


def _to_owned(row: Row) -> OwnedItem:
    place = row["conversation_id"]
    return OwnedItem(conversation_id=place, item=to_item(place, row), is_shared=row["members"] is not None)


def _read_log(connection: Connection, conversation_id: str, end: int | None) -> tuple[Entry, ...]:
    query = _LOG if end is None else _LOG_BELOW
    parameters: Parameters = {"where_id": conversation_id}
    if end is not None:
        parameters["where_end"] = end
    return to_entries(conversation_id, query.rows(connection, parameters))


def _read_items(
    connection: Connection, query: Statement, conversation_id: str, parameters: Parameters
) -> tuple[Item, ...]:
    rows = query.rows(connection, {"where_id": conversation_id, **parameters})
    return tuple(to_item(conversation_id, row) for row in rows)


def _find_item(connection: Connection, conversation_id: str, item_id: str) -> Item | None:
    return next(iter(_read_items(connection, _FIND_ITEM, conversation_id, {"where_item_id": item_id})), None)


def _sequence_of(connection: Connection, conversation_id: str, item_id: str) -> int:
    item = _find_item(connection, conversation_id, item_id)
    if item is None:
        raise NotFound("There is no such item in this conversation.", param="after")
    return item.sequence
