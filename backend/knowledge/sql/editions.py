"""Editions: an edition is the chunks of one version of a document, written or deleted in many short transactions.

The row of a document names its edition; chunks of any other edition belong to no document. While an edition is being
written or deleted it has a row in `unseen_edition`, by which searches leave its chunks out. One small transaction makes
it the edition of its document, or takes it from the document. Editions of processes that ended early are found in that
table and deleted like replaced editions.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from backend.foundation.sql.short_transactions import DivisibleWork
from backend.foundation.sql.statements import Statement
from backend.knowledge.sql import rows, tables
from backend.search.domain.chunks import CHUNKS_AT_ONCE, Range
from backend.search.ports.index import PreparedChunks, SearchIndex
from backend.search.services.fused_search import SearchServices
from shared.clock import Clock
from shared.errors import NotFound

_base = tables.knowledge_base
_chunk = tables.chunk
_unseen = tables.unseen_edition

_ADD_CHUNK = Statement(insert(_chunk))
_HOLD = Statement(select(_base.c.next_chunk_number).where(_base.c.id == bindparam("base_id")).with_for_update())
_TOUCH = Statement(
    update(_unseen).where(
        _unseen.c.edition_id == bindparam("where_edition_id"),
        _unseen.c.is_leaving == bindparam("where_is_leaving"),
    )
)

NO_WORD = ""
"""What the release before reads in `counted_to`: its own index counts none of the words of this edition."""


class Overtaken(Exception):
    """Another process has taken over the edition as one that was left behind, and is deleting it."""


class Edition(NamedTuple):
    """An unseen edition, with the numbers of its chunks: being written, or being deleted (`is_leaving`)."""

    id: str
    base_id: str
    numbers: Range
    is_leaving: bool


SearchIndexInDatabase = SearchIndex[Connection]
"""An index that changes within the transactions in which documents do."""

SearchInDatabase = SearchServices[Connection]
NewChunks = PreparedChunks[Connection]


class EditionWriter:
    """Writes and deletes editions, each in several transactions."""

    def __init__(self, index: SearchIndexInDatabase, clock: Clock) -> None:
        self._index = index
        self._clock = clock

    def reserve(self, connection: Connection, base_id: str, edition_id: str, chunk_count: int) -> Edition:
        """Begin an edition and reserve the numbers of its chunks."""
        first = hold_base(connection, base_id)
        end = first + chunk_count
        connection.execute(update(_base).where(_base.c.id == base_id).values(next_chunk_number=end))
        return self.hide(connection, Edition(edition_id, base_id, Range(first, end), is_leaving=False))

    def hide(self, connection: Connection, edition: Edition) -> Edition:
        """Add an edition to the editions that no reader sees."""
        row = {
            "edition_id": edition.id,
            "knowledge_base_id": edition.base_id,
            "first_number": edition.numbers.first_number,
            "end_number": edition.numbers.end_number,
            "counted_to": NO_WORD,
            "is_leaving": edition.is_leaving,
            "touched_at": self._clock.now(),
        }
        connection.execute(insert(_unseen), row)
        return edition

    def fill(self, connection: Connection, edition: Edition, written: int, new: NewChunks) -> None:
        """Write chunks and put them into the index, behind as many that are `written`."""
        self._touch(connection, edition)
        first = edition.numbers.first_number + written
        _ADD_CHUNK.change(
            connection,
            *(
                rows.chunk_parameters(edition.id, edition.base_id, chunk, number)
                for number, chunk in enumerate(new.chunks, first)
            ),
        )
        new.put(connection, edition.base_id, first)

    def show(self, connection: Connection, edition_id: str) -> None:
        """Remove an edition from the editions that no reader sees.

        Raises:
            Overtaken: another process has taken it over.
        """
        is_arriving = (_unseen.c.edition_id == edition_id) & ~_unseen.c.is_leaving
        if not connection.execute(delete(_unseen).where(is_arriving)).rowcount:
            raise Overtaken

    def clear(self, edition: Edition) -> DivisibleWork[None]:
        """Remove a leaving edition from the index and delete it."""
        connection = yield
        self._touch(connection, edition)
        yield from self._index.remove(edition.base_id, edition.numbers)
        yield from clear_chunks(edition.base_id, edition.numbers)
        connection = yield
        self._touch(connection, edition)
        connection.execute(delete(_unseen).where(_unseen.c.edition_id == edition.id))

    def take_over(self, connection: Connection, edition: Edition) -> Edition:
        """Mark an edition that was left behind as leaving, so that the process that began it cannot continue."""
        self._touch(connection, edition)
        is_it = _unseen.c.edition_id == edition.id
        connection.execute(update(_unseen).where(is_it).values(is_leaving=True))
        return edition._replace(is_leaving=True)

    def _touch(self, connection: Connection, edition: Edition) -> None:
        """Record progress with an edition.

        Raises:
            Overtaken: another process has taken it over, or has deleted it.
        """
        hold_base(connection, edition.base_id)
        as_known = {"where_edition_id": edition.id, "where_is_leaving": edition.is_leaving}
        if not _TOUCH.change(connection, {**as_known, "touched_at": self._clock.now()}):
            raise Overtaken


def clear_chunks(base_id: str, numbers: Range) -> DivisibleWork[None]:
    """Delete chunks that the index does not hold any more."""
    for first in range(numbers.first_number, numbers.end_number, CHUNKS_AT_ONCE):
        connection = yield
        are_these = _chunk.c.number.between(first, min(first + CHUNKS_AT_ONCE, numbers.end_number) - 1)
        connection.execute(delete(_chunk).where(_chunk.c.knowledge_base_id == base_id, are_these))


def find_unseen(connection: Connection, base_id: str | None, untouched_since: datetime) -> list[Edition]:
    """Return unseen editions, of one base or of all, that nobody has touched since then."""
    columns = ("edition_id", "knowledge_base_id", "first_number", "end_number", "is_leaving")
    query = select(*(_unseen.c[name] for name in columns)).where(_unseen.c.touched_at <= untouched_since)
    if base_id is not None:
        query = query.where(_unseen.c.knowledge_base_id == base_id)
    found = connection.execute(query.order_by(_unseen.c.edition_id)).mappings()
    return [
        Edition(
            row["edition_id"],
            row["knowledge_base_id"],
            Range(row["first_number"], row["end_number"]),
            row["is_leaving"],
        )
        for row in found
    ]


def numbers_of(connection: Connection, edition_id: str) -> Range:
    """Return the numbers of an edition's chunks, which follow one another."""
    ends = [
        connection.execute(
            select(_chunk.c.number).where(_chunk.c.edition_id == edition_id).order_by(order).limit(1)
        ).scalar()
        for order in (_chunk.c.ordinal, _chunk.c.ordinal.desc())
    ]
    first, last = ends
    return Range(0, 0) if first is None or last is None else Range(first, last + 1)


def hold_base(connection: Connection, base_id: str) -> int:
    """Lock the row of a base against other writers; return the number of its next chunk.

    Raises:
        NotFound: there is no such base.
    """
    row = _HOLD.first(connection, {"base_id": base_id})
    if row is None:
        raise NotFound("There is no such knowledge base.")
    return row["next_chunk_number"]
