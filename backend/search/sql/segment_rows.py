"""The rows of segments: writing, hiding, deleting and reading them. NumPy is not needed for this."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from backend.foundation.domain.bounded import Bounded
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.short_transactions import DivisibleWork
from backend.foundation.sql.statements import Statement
from backend.search.domain.chunks import Range
from backend.search.domain.tokenizing import TOKENS_VERSION
from backend.search.sql import tables
from shared.clock import Clock

_base, _segment = tables.knowledge_base, tables.index_segment
_page, _gone = tables.index_page, tables.index_gone
_LOCK = Statement(select(_base.c.id).where(_base.c.id == bindparam("base_id")).with_for_update())
_ADD_PAGES = Statement(insert(_page))
_NEXT_PAGES = Statement(
    select(_page.c.id).where(_page.c.id.between(bindparam("first"), bindparam("last"))).order_by(_page.c.id).limit(256)
)
_LENGTH_BYTES = 2
_KEPT_BYTES = 32 * 1024 * 1024
"""A fifth of what the process takes, for all bases: the lengths of a million chunks take 2 MiB of it, the rest is for
the pages of words that questions often have."""

_BYTES_BESIDE = 1_200
"""What keeping lengths or a page takes besides them: a base of small documents has many small segments."""

_AT_ONCE = 4_000


class IndexSegment(NamedTuple):
    """A segment in the database, without its pages; `size` is how many chunks it had when it was written.

    One that is visible never changes, and its row names its content: `touched_at` tells it from another of the same id,
    which a database may give again after it was brought back from a backup.
    """

    id: int
    base_id: str
    first_number: int
    end_number: int
    size: int
    bits: int
    touched_at: datetime


class PackedSegment(NamedTuple):
    """The packed index of some chunks: pages of postings, divided by the first `bits` bits of the hashes of words.

    `lengths` holds the index tokens of each chunk as two bytes, `token_count` their sum.
    """

    bits: int
    lengths: bytes
    pages: Mapping[int, bytes]
    token_count: int


Page = TypeVar("Page")
Kept = TypeVar("Kept")
_Part = tuple[int | None, int, datetime]
"""A page by the key of its row, or None for the lengths of chunks; of which segment, and when that was written."""


def lock_base(connection: Connection, base_id: str) -> bool:
    """Lock the row of a base, as those do who change its documents; return whether there is such a base."""
    return _LOCK.first(connection, {"base_id": base_id}) is not None


class SegmentRows:
    """Segments in the database."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def add(
        self, connection: Connection, base_id: str, first_number: int, segment: PackedSegment, *, is_visible: bool
    ) -> int:
        """Write a segment of chunks that follow one another; return its id."""
        size = len(segment.lengths) // _LENGTH_BYTES
        added = self.begin(connection, base_id, Range(first_number, first_number + size), segment.bits)
        values = {
            "is_visible": is_visible,
            "lengths": segment.lengths,
            "chunk_count": size,
            "tokens_version": TOKENS_VERSION,
        }
        connection.execute(update(_segment).where(_segment.c.id == added).values(**values))
        self.add_pages(connection, added, list(segment.pages.items()))
        return added

    def begin(self, connection: Connection, base_id: str, numbers: Range, bits: int) -> int:
        """Make an empty segment that is not visible; return its id."""
        values = {
            "knowledge_base_id": base_id,
            "first_number": numbers.first_number,
            "end_number": numbers.end_number,
            "chunk_count": 0,
            "bits": bits,
            "is_visible": False,
            "touched_at": self._clock.now(),
            "lengths": b"",
        }
        return connection.execute(insert(_segment).values(values).returning(_segment.c.id)).scalar_one()

    def add_pages(self, connection: Connection, segment_id: int, pages: Sequence[tuple[int, bytes]]) -> None:
        """Write pages of a segment."""
        start = segment_id << tables.PAGE_BITS
        if pages:
            _ADD_PAGES.change(connection, *({"id": start + page, "postings": packed} for page, packed in pages))

    def touch(self, connection: Connection, segment_id: int) -> bool:
        """Record progress with a segment that is not visible yet; False where another process has deleted it."""
        is_it = (_segment.c.id == segment_id) & ~_segment.c.is_visible
        return bool(connection.execute(update(_segment).where(is_it).values(touched_at=self._clock.now())).rowcount)

    def hide(self, connection: Connection, segment_ids: Sequence[int]) -> int:
        """Make segments invisible; return how many were visible."""
        are_these = _segment.c.id.in_(segment_ids) & _segment.c.is_visible
        values = {"is_visible": False, "touched_at": self._clock.now()}
        return connection.execute(update(_segment).where(are_these).values(**values)).rowcount

    def remove(self, connection: Connection, base_id: str, numbers: Range) -> list[int]:
        """Take chunks out of the index: note that they are gone from segments that hold others too, and hide the rest.

        Return the ids of the segments to be dropped. The base is held: who merges segments must not show chunks again
        that were removed meanwhile.
        """
        lock_base(connection, base_id)
        of_base = (_segment.c.knowledge_base_id == base_id) & _segment.c.is_visible
        overlaps = (_segment.c.first_number < numbers.end_number) & (_segment.c.end_number > numbers.first_number)
        query = select(_segment.c.id, _segment.c.first_number, _segment.c.end_number).where(of_base, overlaps)
        found = connection.execute(query).all()
        whole = [one for one, first, end in found if numbers.first_number <= first and end <= numbers.end_number]
        for one, first, end in found:
            if one not in whole:
                part = Range(max(first, numbers.first_number), min(end, numbers.end_number))
                self.note_gone(connection, base_id, part)
        self.hide(connection, whole)
        return whole

    def drop(self, segment_ids: Sequence[int]) -> DivisibleWork[None]:
        """Delete invisible segments."""
        for one in segment_ids:
            yield from drop_pages(one)
            connection = yield
            connection.execute(delete(_segment).where(_segment.c.id == one, ~_segment.c.is_visible))

    def note_gone(self, connection: Connection, base_id: str, part: Range) -> None:
        """Note that deleted chunks are still in a visible segment."""
        is_it = (_gone.c.knowledge_base_id == base_id) & (_gone.c.first_number == part.first_number)
        connection.execute(delete(_gone).where(is_it))
        connection.execute(insert(_gone), {"knowledge_base_id": base_id, **part._asdict()})


class VisibleSegments(Generic[Page]):
    """Reads the lengths of the chunks of visible segments, and their pages; those that searches read last are kept.

    The caller sees one state of the database, in which the segments are visible: all of their pages are there.
    `unpack_page` makes of a stored page, or of the empty one that has no row, what is looked into.
    """

    def __init__(self, dialect: Dialect, unpack_page: Callable[[bytes], Page], most_bytes: int = _KEPT_BYTES) -> None:
        self._dialect = dialect
        self._unpack_page = unpack_page
        among = partial(is_among, name="ids", dialect=dialect)
        self._lengths = Statement(select(_segment.c.id, _segment.c.lengths.label("packed")).where(among(_segment.c.id)))
        self._pages = Statement(select(_page.c.id, _page.c.postings.label("packed")).where(among(_page.c.id)))
        self._kept = Bounded[_Part, tuple[int, Any]](most_bytes, lambda kept: kept[0] + _BYTES_BESIDE)
        self._lock = threading.Lock()

    def lengths(self, connection: Connection, segments: Iterable[IndexSegment]) -> Mapping[int, bytes]:
        """Return the lengths by the ids of the segments."""
        parts = {one.id: (None, one.id, one.touched_at) for one in segments}
        return self._take_or_read(connection, self._lengths, parts, bytes)

    def pages(self, connection: Connection, pages: Mapping[int, IndexSegment]) -> Mapping[int, Page]:
        """Return pages, whose segments are given by the keys of their rows; those without a row are empty."""
        parts = {key: (key, one.id, one.touched_at) for key, one in pages.items()}
        return self._take_or_read(connection, self._pages, parts, self._unpack_page)

    def unkept_pages(self, connection: Connection, pages: Mapping[int, IndexSegment]) -> Mapping[int, Page]:
        """Return pages of segments as `pages` does, for a reader of so many that those of searches would be lost."""
        found = self._read(connection, self._pages, sorted(pages))
        return {key: self._unpack_page(packed) for key, packed in found.items()}

    def _take_or_read(
        self, connection: Connection, statement: Statement, parts: Mapping[int, _Part], read: Callable[[bytes], Kept]
    ) -> Mapping[int, Kept]:
        with self._lock:
            taken = {key: kept[1] for key, part in parts.items() if (kept := self._kept.find(part)) is not None}
        stored = self._read(connection, statement, [key for key in parts if key not in taken])
        fresh = {key: read(packed) for key, packed in stored.items()}
        with self._lock:
            for key, packed in stored.items():
                self._kept.put(parts[key], (len(packed), fresh[key]))
        return taken | fresh

    def _read(self, connection: Connection, statement: Statement, keys: Sequence[int]) -> dict[int, bytes]:
        read = dict.fromkeys(keys, b"")
        for start in range(0, len(keys), _AT_ONCE):
            asked = {"ids": list_parameter(keys[start : start + _AT_ONCE], self._dialect)}
            read |= {row["id"]: row["packed"] for row in statement.rows(connection, asked)}
        return read


def drop_pages(segment_id: int) -> DivisibleWork[None]:
    """Delete the pages of a segment."""
    span = {"first": segment_id << tables.PAGE_BITS, "last": ((segment_id + 1) << tables.PAGE_BITS) - 1}
    while True:
        connection = yield
        found = [row["id"] for row in _NEXT_PAGES.rows(connection, span)]
        if not found:
            return
        connection.execute(delete(_page).where(_page.c.id.between(found[0], found[-1])))
