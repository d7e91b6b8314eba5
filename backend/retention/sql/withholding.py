"""Withholding of answers that rest on a document which is deleted."""

from sqlalchemy import ColumnElement, Connection, Integer, Table, bindparam, func, select, update

from backend.conversations.sql.tables import HAS_LABEL, log_entry, response
from backend.foundation.sql.statements import Statement
from backend.restricted.sql.tables import receipt, receipt_document


def _mark(table: Table) -> ColumnElement[str]:
    return table.c.label.concat(" ").concat(bindparam("where_document_id"))


_FIND_TURNS = Statement(
    select(receipt.c.turn_id)
    .join(receipt_document)
    .where(receipt_document.c.document_id == bindparam("where_document_id"))
    .distinct()
)
_FIND_BEGINNINGS = Statement(
    select(log_entry.c.conversation_id, func.min(log_entry.c.position).label("position"))
    .where(HAS_LABEL, log_entry.c.turn_id == bindparam("where_turn_id"))
    .group_by(log_entry.c.conversation_id)
)
_IS_LATER = (
    HAS_LABEL,
    log_entry.c.conversation_id == bindparam("where_conversation_id"),
    log_entry.c.position >= bindparam("where_position", type_=Integer),
)
_FIND_LATER = Statement(select(log_entry.c.turn_id).where(*_IS_LATER).distinct())
_MARK_ENTRIES = Statement(update(log_entry).where(*_IS_LATER).values(label=_mark(log_entry)))
_MARK_RESPONSE = Statement(
    update(response).where(HAS_LABEL, response.c.id == bindparam("where_turn_id")).values(label=_mark(response))
)


def withhold_answers(connection: Connection, document_id: str) -> None:
    """Withhold from everybody the answers that rest on a document, and what was made of them.

    A label of the deleted document's own is put on them, which nobody can read any more: so they are left out wherever
    labels are obeyed. The turns behind such an answer, in its conversation and in forks of it, have seen it, and
    summaries are made in such turns; those without any label have not.
    """
    document = {"where_document_id": document_id}
    for turn in _FIND_TURNS.rows(connection, document):
        is_turn = {"where_turn_id": turn["turn_id"]}
        _MARK_RESPONSE.change(connection, {**is_turn, **document})
        for beginning in _FIND_BEGINNINGS.rows(connection, is_turn):
            place = {"where_conversation_id": beginning["conversation_id"], "where_position": beginning["position"]}
            later = {row["turn_id"] for row in _FIND_LATER.rows(connection, place)} - {turn["turn_id"]}
            _MARK_ENTRIES.change(connection, {**place, **document})
            for turn_id in later:
                _MARK_RESPONSE.change(connection, {"where_turn_id": turn_id, **document})
