"""Facts in SQL: what searches have shown, and what answers have told of it."""

from sqlalchemy import Connection, bindparam, insert, select

from backend.foundation.sql.statements import Statement
from backend.knowledge.sql.tables import chunk, document
from backend.restricted.domain.restricted import Settlement
from backend.restricted.domain.restricted_budget import MONTH
from backend.restricted.domain.told_facts import ChunkShown, count_facts, is_overspent
from backend.restricted.sql import tables
from shared.models.knowledge_api import ToldFact

_told, _shown = tables.told_fact, tables.served_chunk
_ADD = Statement(insert(_told))
_FIND = Statement(
    select(_told.c.document_id, _told.c.digest)
    .where(
        _told.c.document_id == bindparam("where_document_id"),
        _told.c.user_id == bindparam("where_user_id"),
        _told.c.told_at > bindparam("since"),
    )
    .distinct()
)
_READ_SHOWN = Statement(
    select(_shown.c.document_id, chunk.c.text)
    .join(document, document.c.id == _shown.c.document_id)
    .join(chunk, (chunk.c.edition_id == document.c.edition_id) & (chunk.c.ordinal == _shown.c.ordinal))
    .where(_shown.c.search_id == bindparam("where_search_id"))
    .order_by(_shown.c.document_id, _shown.c.ordinal)
)


def read_shown(connection: Connection, search_id: str) -> tuple[ChunkShown, ...]:
    """Return the chunks that a search has shown."""
    found = _READ_SHOWN.rows(connection, {"where_search_id": search_id})
    return tuple(ChunkShown(row["document_id"], row["text"]) for row in found)


def add_facts(connection: Connection, settlement: Settlement) -> bool:
    """Charge the facts of an answer, or return False where they are too many; the caller has locked the user's rows."""
    record, facts = settlement.record, settlement.facts
    asked = {"where_user_id": settlement.user_id, "since": record.recorded_at - MONTH}
    told = [
        ToldFact(document_id=row["document_id"], digest=row["digest"])
        for document_id in count_facts(facts)
        for row in _FIND.rows(connection, {**asked, "where_document_id": document_id})
    ]
    if is_overspent(told, facts, settlement.most_facts):
        return False
    row = {"search_id": record.search_id, "user_id": settlement.user_id, "told_at": record.recorded_at}
    if facts:
        _ADD.change(connection, *({**row, **fact.model_dump()} for fact in facts))
    return True
