"""Editions: an edition is the chunks of one version of a document, written or deleted in many short transactions.

The row of a document names its edition; chunks of any other edition belong to no document. While an edition is being
written or deleted it has a row in `unseen_edition`, by which searches leave its chunks out. One small transaction makes
it the edition of its document, or takes it from the document. Editions of processes that ended early are found in that
table and deleted like replaced editions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from backend.foundation.sql.short_transactions import DivisibleWork
from backend.foundation.sql.statements import Statement
from backend.knowledge.domain.index_entries import IndexEntry, index_entries
from backend.knowledge.domain.knowledge import Chunk
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.search_index import NumberedEntry, SearchIndex, WordCounts
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
        _unseen.c.counted_to == bindparam("where_counted_to"),
        _unseen.c.is_leaving == bindparam("where_is_leaving"),
    )
)

NO_WORD = ""
EVERY_WORD = "\U0010fffd"
"""Sorts after every word, because no word holds this code point."""

_WORDS_PER_STEP = 4_000


class Overtaken(Exception):
    """Another process has taken over the edition as one that was left behind, and is deleting it."""


class Edition(NamedTuple):
    """An unseen edition: being written, or being deleted (`is_leaving`).

    Words up to `counted_to`, by code point, are in the word counts of the index.
    """

    id: str
    base_id: str
    first_number: int
    end_number: int
    counted_to: str
    is_leaving: bool


class Content(NamedTuple):
    """Chunks and their index entries, in document order."""

    chunks: Sequence[Chunk]
    entries: Sequence[IndexEntry]

    @property
    def token_count(self) -> int:
        """The number of index tokens of all chunks."""
        return sum(len(entry.tokens) for entry in self.entries)


class EditionWriter:
    """Writes and deletes editions, each in several transactions."""

    def __init__(self, index: SearchIndex, clock: Clock) -> None:
        self._index = index
        self._clock = clock

    def reserve(self, connection: Connection, base_id: str, edition_id: str, chunk_count: int) -> Edition:
        """Begin an edition and reserve the numbers of its chunks."""
        first = hold_base(connection, base_id)
        end = first + chunk_count
        connection.execute(update(_base).where(_base.c.id == base_id).values(next_chunk_number=end))
        edition = Edition(edition_id, base_id, first, end, NO_WORD, is_leaving=False)
        return self.hide(connection, edition)

    def hide(self, connection: Connection, edition: Edition) -> Edition:
        """Add an edition to the editions that no reader sees."""
        connection.execute(insert(_unseen), {**_columns(edition), "touched_at": self._clock.now()})
        return edition

    def fill(self, edition: Edition, content: Content, counts: WordCounts) -> DivisibleWork[None]:
        """Write chunks and index entries; `counts` is the index's `word_counts` of the entries."""
        size = self._index.chunks_per_step
        for start in range(0, len(content.chunks), size):
            connection = yield
            self._touch(connection, edition)
            chunks = content.chunks[start : start + size]
            numbers = range(edition.first_number + start, edition.end_number)
            _ADD_CHUNK.change(
                connection,
                *(
                    rows.chunk_parameters(edition.id, edition.base_id, chunk, number)
                    for chunk, number in zip(chunks, numbers, strict=False)
                ),
            )
            numbered = zip(numbers, content.entries[start : start + size], strict=False)
            self._index.add(connection, edition.base_id, [NumberedEntry(*one) for one in numbered])
        for start in range(0, len(counts), _WORDS_PER_STEP):
            connection = yield
            changes = counts[start : start + _WORDS_PER_STEP]
            edition = self._touch(connection, edition, counted_to=changes[-1][0])
            self._index.count_words(connection, edition.base_id, changes)

    def show(self, connection: Connection, edition_id: str) -> None:
        """Remove an edition from the editions that no reader sees.

        Raises:
            Overtaken: another process has taken it over.
        """
        is_arriving = (_unseen.c.edition_id == edition_id) & ~_unseen.c.is_leaving
        if not connection.execute(delete(_unseen).where(is_arriving)).rowcount:
            raise Overtaken

    def clear(self, edition: Edition, entries: Sequence[NumberedEntry], counts: WordCounts) -> DivisibleWork[None]:
        """Remove a leaving edition from the index and delete it; `entries` are all its entries in the index."""
        counted = bisect_right(counts, edition.counted_to, key=itemgetter(0))
        while counted:
            connection = yield
            rest = max(0, counted - _WORDS_PER_STEP)
            edition = self._touch(connection, edition, counted_to=counts[rest - 1][0] if rest else NO_WORD)
            self._index.discount_words(connection, edition.base_id, counts[rest:counted])
            counted = rest
        size = self._index.chunks_per_step
        for start in range(0, len(entries), size):
            connection = yield
            self._touch(connection, edition)
            going = entries[start : start + size]
            self._index.remove(connection, edition.base_id, going)
            numbers = _chunk.c.number.between(going[0].number, going[-1].number)
            connection.execute(delete(_chunk).where(_chunk.c.knowledge_base_id == edition.base_id, numbers))
        connection = yield
        self._touch(connection, edition)
        connection.execute(delete(_unseen).where(_unseen.c.edition_id == edition.id))

    def take_over(self, connection: Connection, edition: Edition) -> Edition:
        """Mark an edition that was left behind as leaving, so that the process that began it cannot continue."""
        self._touch(connection, edition)
        is_it = _unseen.c.edition_id == edition.id
        connection.execute(update(_unseen).where(is_it).values(is_leaving=True))
        return edition._replace(is_leaving=True)

    def _touch(self, connection: Connection, edition: Edition, counted_to: str | None = None) -> Edition:
        """Record progress with an edition.

        Raises:
            Overtaken: another process has changed the edition since.
        """
        hold_base(connection, edition.base_id)
        reached = edition.counted_to if counted_to is None else counted_to
        as_known = {
            "where_edition_id": edition.id,
            "where_counted_to": edition.counted_to,
            "where_is_leaving": edition.is_leaving,
        }
        if not _TOUCH.change(connection, {**as_known, "counted_to": reached, "touched_at": self._clock.now()}):
            raise Overtaken
        return edition._replace(counted_to=reached)


def find_unseen(connection: Connection, base_id: str | None, untouched_since: datetime) -> list[Edition]:
    """Return unseen editions, of one base or of all, that nobody has touched since then."""
    query = select(*(_unseen.c[name] for name in _COLUMNS)).where(_unseen.c.touched_at <= untouched_since)
    if base_id is not None:
        query = query.where(_unseen.c.knowledge_base_id == base_id)
    return [Edition(*row) for row in connection.execute(query.order_by(_unseen.c.edition_id))]


def find_chunks(connection: Connection, edition_id: str) -> Sequence[RowMapping]:
    """Return the rows of an edition's chunks, in document order."""
    query = select(*rows.STORED_CHUNK_COLUMNS).where(_chunk.c.edition_id == edition_id).order_by(_chunk.c.ordinal)
    return connection.execute(query).mappings().all()


def numbered_entries(found: Sequence[RowMapping]) -> list[NumberedEntry]:
    """Make the index entries of an edition's chunks again; it takes long, so call it in a thread."""
    entries = index_entries(rows.to_chunk(row, document_id="") for row in found)
    return [NumberedEntry(row["number"], entry) for row, entry in zip(found, entries, strict=True)]


def hold_base(connection: Connection, base_id: str) -> int:
    """Lock the row of a base against other writers; return the number of its next chunk.

    Raises:
        NotFound: there is no such base.
    """
    row = _HOLD.first(connection, {"base_id": base_id})
    if row is None:
        raise NotFound("There is no such knowledge base.")
    return row["next_chunk_number"]


_COLUMNS = ("edition_id", "knowledge_base_id", "first_number", "end_number", "counted_to", "is_leaving")


def _columns(edition: Edition) -> dict[str, object]:
    return dict(zip(_COLUMNS, edition, strict=True))
