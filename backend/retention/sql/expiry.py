"""Expired things, found by readers and deleted in short transactions."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import ColumnElement, Table, select, update

from backend.conversations.ports.conversations import ConversationStore
from backend.conversations.sql import tables as told
from backend.files.sql import tables as files
from backend.foundation.sql.database import Database
from backend.foundation.sql.row_steps import change_rows
from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START
from backend.knowledge.sql.tables import attachment, document
from backend.restricted.sql.tables import safe_summary_audit
from backend.retention.domain import DuePage, Kept
from backend.retention.sql.row_pages import look_through, remove_rows
from shared.clock import Clock

_conversation, _response, _file, _audit = told.conversation, told.response, files.uploaded_file, safe_summary_audit
_TABLES: dict[Kept, Table] = {
    Kept.CONVERSATIONS: _conversation,
    Kept.RESPONSES: _response,
    Kept.FILES: _file,
    Kept.AUDIT_RECORDS: _audit,
}


class SqlExpiryStore:
    """The `ExpiryStore` over a `Database`; what it withdraws of conversations, their own store clears."""

    def __init__(self, database: Database, conversations: ConversationStore, clock: Clock) -> None:
        self._database = database
        self._conversations = conversations
        self._clock = clock

    async def due(self, kind: Kept, before: datetime, after: str) -> DuePage:
        """Read a page of ids, and of these the ones that are due."""
        return await self._database.read(partial(look_through, _TABLES[kind], _is_due(kind, before), after))

    async def delete(self, kind: Kept, ids: Sequence[str], before: datetime) -> int:
        """Delete some at a time; what has been touched since it was found is left."""
        if kind is Kept.CONVERSATIONS:
            return sum([await self._delete_conversation(each, before) for each in ids])
        removal = partial(remove_rows, _TABLES[kind], _is_due(kind, before), self._clock)
        return await change_rows(self._database, ids, removal)

    async def _delete_conversation(self, conversation_id: str, before: datetime) -> int:
        which = (_conversation.c.id == conversation_id) & _is_due(Kept.CONVERSATIONS, before)
        withdrawn = update(_conversation).where(which).values(told.WITHDRAWAL)
        if not await self._database.write(lambda connection: connection.execute(withdrawn).rowcount):
            return 0
        await self._conversations.clear(conversation_id)
        return 1


def _is_due(kind: Kept, before: datetime) -> ColumnElement[bool]:
    if kind is Kept.CONVERSATIONS:
        return _conversation_is_due(before)
    if kind is Kept.RESPONSES:
        return _response_is_due(before)
    if kind is Kept.FILES:
        return _file_is_due(before)
    return _audit.c.recorded_at < before


def _conversation_is_due(before: datetime) -> ColumnElement[bool]:
    """Each turn and each added item writes to the log, so that its newest entry tells when it was last touched."""
    entry, turn = told.log_entry, told.waiting_turn
    is_newest = (entry.c.conversation_id == _conversation.c.id) & (entry.c.position == _conversation.c.log_length - 1)
    touched = select(entry.c.position).where(is_newest, entry.c.created_at >= before).exists()
    waits = turn.c.entered_id.is_(None) | (turn.c.created_at >= before)
    awaited = select(turn.c.id).where(turn.c.conversation_id == _conversation.c.id, waits).exists()
    is_free = _conversation.c.running_response_id.is_(None)
    return (_conversation.c.created_at < before) & is_free & ~touched & ~awaited


def _response_is_due(before: datetime) -> ColumnElement[bool]:
    """A response is kept as long as its conversation is, and a turn that runs until it has ended."""
    is_kept = (_conversation.c.id == _response.c.conversation_id) & ~told.IS_WITHDRAWN
    has_ended = _response.c.status.not_in(("queued", "in_progress"))
    return (_response.c.created_at < before) & has_ended & ~select(_conversation.c.id).where(is_kept).exists()


def _file_is_due(before: datetime) -> ColumnElement[bool]:
    """A file that a base or an agent uses stays; the file index of its owner's own messages is no such use."""
    is_unused = [
        ~select(table.c.file_id)
        .where(
            table.c.file_id == _file.c.id,
            ~table.c.knowledge_base_id.startswith(f"{FILE_INDEX_ID_START}user_", autoescape=True),
        )
        .exists()
        for table in (document, attachment)
    ]
    return (_file.c.state == files.STORED) & (_file.c.touched_at < before) & is_unused[0] & is_unused[1]
