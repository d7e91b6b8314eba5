"""Deleting what a base holds in small steps, once it is nobody's base any more."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from backend.foundation.sql.short_transactions import DivisibleWork
from backend.knowledge.sql import tables
from backend.knowledge.sql.editions import SearchIndexInDatabase, clear_chunks
from backend.search.domain.chunks import Range

_base, _member, _document = tables.knowledge_base, tables.knowledge_member, tables.document
_chunk = tables.chunk


def find_ownerless(connection: Connection) -> Sequence[str]:
    """Return the bases without any member: a base keeps an owner until it is deleted."""
    has_member = select(_member.c.user_id).where(_member.c.knowledge_base_id == _base.c.id).exists()
    return connection.execute(select(_base.c.id).where(~has_member)).scalars().all()


def clear_base(base_id: str, index: SearchIndexInDatabase) -> DivisibleWork[None]:
    """Delete documents, chunks and index of a base, then the base."""
    # Who changes documents locks the base and then the documents, too.
    locking = select(_base.c.id).where(_base.c.id == base_id).with_for_update()
    while True:
        connection = yield
        connection.execute(locking)
        is_first = _document.c.id.in_(select(_document.c.id).where(_document.c.knowledge_base_id == base_id).limit(1))
        if not connection.execute(delete(_document).where(is_first)).rowcount:
            break
    while (numbers := _ends(connection, base_id)) is not None:
        yield from index.remove(base_id, numbers)
        yield from clear_chunks(base_id, numbers)
        connection = yield
    yield from index.drop(base_id)
    connection = yield
    connection.execute(delete(_base).where(_base.c.id == base_id))


def _ends(connection: Connection, base_id: str) -> Range | None:
    """Return the range in which the numbers of the chunks of a base lie; None where it has none."""
    query = select(_chunk.c.number).where(_chunk.c.knowledge_base_id == base_id)
    first = connection.execute(query.order_by(_chunk.c.number).limit(1)).scalar()
    last = connection.execute(query.order_by(_chunk.c.number.desc()).limit(1)).scalar()
    return Range(first, last + 1) if first is not None and last is not None else None
