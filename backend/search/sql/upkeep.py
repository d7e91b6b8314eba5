"""Upkeep of the index: segments are merged, and documents of the release before are indexed.

All of it runs beside requests, in short transactions, and may be interrupted anywhere: a segment becomes visible in the
transaction that makes those that it replaces invisible, and invisible segments that nobody touches are deleted.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np
import orjson
from sqlalchemy import Connection, RowMapping, delete, func, select, true, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.search.domain.chunks import CHUNKS_AT_ONCE, Range, join_headings
from backend.search.domain.tokenizing import TOKENS_VERSION
from backend.search.sql import tables
from backend.search.sql.chunk_rows import CHUNK_COLUMNS
from backend.search.sql.merging import Slice, choose_to_merge, find_missing, merge_lengths, merge_pages
from backend.search.sql.segment_rows import IndexSegment, PackedSegment, SegmentRows, drop_pages, lock_base
from backend.search.sql.segments import bits_of_pages, pack_texts
from backend.search.sql.tables import IS_CHANGED, IS_UNINDEXED, UNINDEXED_HINT
from backend.search.sql.word_postings import outside
from shared.clock import Clock
from shared.errors import NotFound

_PAGES_PER_STEP_BITS = 8

_base, _document, _chunk, _unseen = tables.knowledge_base, tables.document, tables.chunk, tables.unseen_edition
_segment, _page, _gone = tables.index_segment, tables.index_page, tables.index_gone
_SEGMENT_COLUMNS = [
    _segment.c[name]
    for name in ("id", "knowledge_base_id", "first_number", "end_number", "chunk_count", "bits", "touched_at")
]


class _Job(NamedTuple):
    """Neighbouring segments that are to become one, and the deleted chunks that are left out of it."""

    segments: Sequence[IndexSegment]
    gone: Sequence[Range]

    @property
    def numbers(self) -> Range:
        return Range(self.segments[0].first_number, self.segments[-1].end_number)


class _Changed(NamedTuple):
    """A base that the release before has changed: by how many versions, and what of its segments is deleted."""

    base_id: str
    growth: int
    deleted: Sequence[Range]


class _Legacy(NamedTuple):
    """A document that is in no segment."""

    id: str
    edition_id: str
    base_id: str


class _Outdated(NamedTuple):
    """A segment that an earlier version of the tokens has written, and the deleted chunks that are still in it."""

    base_id: str
    segment: IndexSegment
    gone: Sequence[Range]


class IndexUpkeep:
    """Tidies the index of one database."""

    def __init__(self, database: Database, clock: Clock, slice_seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._segments = SegmentRows(clock)

    async def tidy(self, base_id: str) -> None:
        """Merge the segments of a base until none are left to merge."""
        while job := await self._database.read(lambda connection: _next_job(connection, base_id)):
            if not await self._merge(base_id, job):
                return

    async def index_legacy(self) -> None:
        """Index the documents that the release before has put."""
        while found := await self._database.read(_find_legacy):
            await self._index(found)
            await self.tidy(found.base_id)

    async def renew(self) -> None:
        """Index anew what was indexed by an earlier version of the tokens; until then it is found by these."""
        while await self.renew_next():
            pass

    async def renew_next(self) -> bool:
        """Index anew one of those segments; return whether there was one."""
        found = await self._database.read(_find_outdated)
        if found is None:
            return False
        await self._renew(found)
        await self.tidy(found.base_id)
        return True

    async def drop_left_behind(self, after: timedelta) -> None:
        """Delete invisible segments that nobody has touched for so long, and pages without a segment."""
        since = self._clock.now() - after
        for one in await self._database.read(lambda connection: _find_invisible(connection, since)):
            await run_in_short_transactions(self._database, self._segments.drop([one]), self._slice_seconds)
        reached = 0
        while (found := await self._database.read(partial(_find_pages, reached=reached))) is not None:
            segment_id, has_segment = found
            if not has_segment:
                await run_in_short_transactions(self._database, drop_pages(segment_id), self._slice_seconds)
            reached = segment_id + 1

    async def note_deleted(self, *, everywhere: bool = False) -> None:
        """Note chunks that are in segments though they are deleted: the release before knows nothing of segments.

        `everywhere` looks also where that release has changed no document: it deletes what ended processes left behind.
        """
        reached = ""
        find = partial(_find_changed, everywhere=everywhere)
        while found := await self._database.snapshot(partial(find, reached=reached)):
            await self._database.write(partial(self._note, found=found))
            reached = found.base_id

    def _note(self, connection: Connection, found: _Changed) -> None:
        for numbers in found.deleted:
            self._segments.note_gone(connection, found.base_id, numbers)
        is_it = _base.c.id == found.base_id
        grown = func.coalesce(_base.c.indexed_version, 0) + found.growth
        connection.execute(update(_base).where(is_it).values(indexed_version=grown))

    async def _merge(self, base_id: str, job: _Job) -> bool:
        """Write the merged segment, and make it visible unless one of those that it replaces is not any more."""
        bits = bits_of_pages(sum(1 << one.bits for one in job.segments))
        first = job.numbers.first_number
        new = await self._database.write(partial(self._begin, base_id=base_id, numbers=job.numbers, bits=bits))
        if new is None:
            return False
        slice_bits = max(0, bits - _PAGES_PER_STEP_BITS)
        for place in range(1 << slice_bits):
            part = Slice(place, slice_bits)
            pages = await self._database.read(partial(_read_slice, segments=job.segments, part=part))
            merged = await asyncio.to_thread(merge_pages, pages, job.gone, part, (first, bits))
            if not await self._database.write(partial(self._add, segment_id=new, pages=list(merged.items()))):
                return False
        is_shown = await self._database.write(partial(self._replace, base_id=base_id, job=job, new=new))
        going = [one.id for one in job.segments] if is_shown else [new]
        await run_in_short_transactions(self._database, self._segments.drop(going), self._slice_seconds)
        return is_shown

    def _begin(self, connection: Connection, base_id: str, numbers: Range, bits: int) -> int | None:
        """Make an empty segment; None where the base is gone."""
        return self._segments.begin(connection, base_id, numbers, bits) if lock_base(connection, base_id) else None

    def _add(self, connection: Connection, segment_id: int, pages: Sequence[tuple[int, bytes]]) -> bool:
        if not self._segments.touch(connection, segment_id):
            return False
        self._segments.add_pages(connection, segment_id, pages)
        return True

    def _replace(self, connection: Connection, base_id: str, job: _Job, new: int) -> bool:
        if not lock_base(connection, base_id):
            return False
        ids = [one.id for one in job.segments]
        are_these = _segment.c.id.in_(ids) & _segment.c.is_visible
        found = connection.execute(
            select(_segment.c.first_number, _segment.c.lengths, _segment.c.tokens_version)
            .where(are_these)
            .order_by(_segment.c.first_number)
        ).all()
        if len(found) < len(ids) or not self._segments.touch(connection, new):
            return False
        lengths, size = merge_lengths([(first, packed) for first, packed, _ in found], job.numbers, job.gone)
        self._segments.hide(connection, ids)
        shown = {"is_visible": True, "lengths": lengths, "chunk_count": size}
        version = min(version for _, _, version in found)
        connection.execute(update(_segment).where(_segment.c.id == new).values(**shown, tokens_version=version))
        _forget_gone(connection, base_id, job.gone)
        return True

    async def _index(self, found: _Legacy) -> None:
        """Write invisible segments of a document's chunks, then show them all at once."""
        added: list[int] = []
        token_count = ordinal = 0
        while chunk_rows := await self._database.read(
            partial(_read_chunks, edition_id=found.edition_id, ordinal=ordinal)
        ):
            segment = await asyncio.to_thread(pack_texts, map(_text_of, chunk_rows))
            add = partial(self._add_hidden, base_id=found.base_id, first=chunk_rows[0]["number"], segment=segment)
            added.append(await self._database.write(add))
            token_count += segment.token_count
            ordinal = chunk_rows[-1]["ordinal"] + 1
        if not await self._database.write(partial(self._show, found=found, added=added, token_count=token_count)):
            await run_in_short_transactions(self._database, self._segments.drop(added), self._slice_seconds)

    async def _renew(self, found: _Outdated) -> None:
        """Write invisible segments of the chunks of one, then show them in its place."""
        base_id, segment, gone = found
        added: list[int] = []
        for first in range(segment.first_number, segment.end_number, CHUNKS_AT_ONCE):
            numbers = Range(first, min(first + CHUNKS_AT_ONCE, segment.end_number))
            texts = await self._database.read(partial(read_found_by, base_id=base_id, numbers=numbers, gone=gone))
            packed = await asyncio.to_thread(pack_texts, texts)
            add = partial(self._add_hidden, base_id=base_id, first=first, segment=packed)
            added.append(await self._database.write(add))
        is_shown = await self._database.write(partial(self._show_renewed, found=found, added=added))
        going = [segment.id] if is_shown else added
        await run_in_short_transactions(self._database, self._segments.drop(going), self._slice_seconds)

    def _show_renewed(self, connection: Connection, found: _Outdated, added: Sequence[int]) -> bool:
        base_id, segment, gone = found
        lock_base(connection, base_id)
        are_these = _segment.c.id.in_(added)
        there = connection.execute(select(func.count()).select_from(_segment).where(are_these)).scalar_one()
        if there < len(added) or not self._segments.hide(connection, [segment.id]):
            return False
        connection.execute(update(_segment).where(are_these).values(is_visible=True))
        _forget_gone(connection, base_id, gone)
        return True

    def _add_hidden(self, connection: Connection, base_id: str, first: int, segment: PackedSegment) -> int:
        if not lock_base(connection, base_id):
            raise NotFound("There is no such knowledge base.")
        return self._segments.add(connection, base_id, first, segment, is_visible=False)

    def _show(self, connection: Connection, found: _Legacy, added: Sequence[int], token_count: int) -> bool:
        lock_base(connection, found.base_id)
        is_it = (_document.c.id == found.id) & (_document.c.edition_id == found.edition_id) & IS_UNINDEXED
        indexed = {"indexed_edition_id": found.edition_id, "index_token_count": token_count}
        if not connection.execute(update(_document).where(is_it).values(**indexed)).rowcount:
            return False
        connection.execute(update(_segment).where(_segment.c.id.in_(added)).values(is_visible=True))
        return True


def _next_job(connection: Connection, base_id: str) -> _Job | None:
    query = select(*_SEGMENT_COLUMNS).where(_segment.c.knowledge_base_id == base_id, _segment.c.is_visible)
    segments = [IndexSegment(*row) for row in connection.execute(query.order_by(_segment.c.first_number))]
    gone = _read_gone(connection, base_id)
    chosen = choose_to_merge(segments, gone)
    if not chosen:
        return None
    return _Job(chosen, _find_within(gone, Range(chosen[0].first_number, chosen[-1].end_number)))


def _find_outdated(connection: Connection) -> _Outdated | None:
    is_outdated = (_segment.c.tokens_version < TOKENS_VERSION) & _segment.c.is_visible
    row = connection.execute(select(*_SEGMENT_COLUMNS).where(is_outdated).order_by(func.random()).limit(1)).first()
    if row is None:
        return None
    segment = IndexSegment(*row)
    gone = _read_gone(connection, segment.base_id)
    return _Outdated(segment.base_id, segment, _find_within(gone, Range(segment.first_number, segment.end_number)))


def _read_gone(connection: Connection, base_id: str) -> list[Range]:
    query = select(_gone.c.first_number, _gone.c.end_number).where(_gone.c.knowledge_base_id == base_id)
    return [Range(*row) for row in connection.execute(query)]


def _find_within(ranges: Sequence[Range], whole: Range) -> list[Range]:
    return [one for one in ranges if whole.first_number <= one.first_number and one.end_number <= whole.end_number]


def _forget_gone(connection: Connection, base_id: str, ranges: Sequence[Range]) -> None:
    for one in ranges:
        is_it = (_gone.c.knowledge_base_id == base_id) & (_gone.c.first_number == one.first_number)
        connection.execute(delete(_gone).where(is_it, _gone.c.end_number == one.end_number))


def read_found_by(connection: Connection, base_id: str, numbers: Range, gone: Sequence[Range]) -> list[str]:
    """Return what each chunk of a range is found by; nothing for those that are gone."""
    are_these = _chunk.c.number.between(numbers.first_number, numbers.end_number - 1)
    columns = _chunk.c.number, _chunk.c.heading_path, _chunk.c.text
    query = select(*columns).where(_chunk.c.knowledge_base_id == base_id, are_these)
    texts = {row["number"]: _text_of(row) for row in connection.execute(query).mappings()}
    for one in gone:
        texts = {number: text for number, text in texts.items() if not one.first_number <= number < one.end_number}
    return [texts.get(number, "") for number in range(*numbers)]


def _text_of(row: RowMapping) -> str:
    return join_headings(orjson.loads(row["heading_path"]), row["text"])


def _read_slice(connection: Connection, segments: Sequence[IndexSegment], part: Slice) -> list[tuple[int, list[bytes]]]:
    """Read the pages of a part of the hashes, with the first number of each segment."""
    found: list[tuple[int, list[bytes]]] = []
    for one in segments:
        first, last = part.pages(one.bits)
        start = one.id << tables.PAGE_BITS
        query = select(_page.c.postings).where(_page.c.id.between(start + first, start + last)).order_by(_page.c.id)
        found.append((one.first_number, list(connection.execute(query).scalars())))
    return found


def _find_legacy(connection: Connection) -> _Legacy | None:
    query = select(_document.c.id, _document.c.edition_id, _document.c.knowledge_base_id).where(IS_UNINDEXED).limit(1)
    row = connection.execute(query.with_hint(_document, UNINDEXED_HINT, "sqlite")).first()
    return _Legacy(*row) if row is not None else None


def _read_chunks(connection: Connection, edition_id: str, ordinal: int) -> list[RowMapping]:
    query = select(*CHUNK_COLUMNS).where(_chunk.c.edition_id == edition_id, _chunk.c.ordinal >= ordinal)
    return list(connection.execute(query.order_by(_chunk.c.ordinal).limit(CHUNKS_AT_ONCE)).mappings().all())


def _find_invisible(connection: Connection, since: datetime) -> Sequence[int]:
    is_left = ~_segment.c.is_visible & (_segment.c.touched_at <= since)
    return connection.execute(select(_segment.c.id).where(is_left)).scalars().all()


def _find_pages(connection: Connection, reached: int) -> tuple[int, bool] | None:
    """Return the next segment of which there are pages, and whether it is there itself."""
    query = select(_page.c.id).where(_page.c.id >= reached << tables.PAGE_BITS).order_by(_page.c.id).limit(1)
    page = connection.execute(query).scalar()
    if page is None:
        return None
    segment_id = page >> tables.PAGE_BITS
    is_it = select(_segment.c.id).where(_segment.c.id == segment_id)
    return segment_id, connection.execute(is_it).first() is not None


def _find_changed(connection: Connection, reached: str, *, everywhere: bool) -> _Changed | None:
    """Return the next base that the release before has changed, or the next of all."""
    growth = _base.c.version - func.coalesce(_base.c.indexed_version, 0)
    query = (
        select(_base.c.id, growth)
        .where(true() if everywhere else IS_CHANGED, _base.c.id > reached)
        .order_by(_base.c.id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return _Changed(row[0], row[1], _find_deleted_unnoticed(connection, row[0])) if row is not None else None


def _find_deleted_unnoticed(connection: Connection, base_id: str) -> list[Range]:
    """Return the chunks of segments that are deleted, or being deleted, and not known to be."""
    is_shown = (_segment.c.knowledge_base_id == base_id) & _segment.c.is_visible
    segments = connection.execute(select(_segment.c.first_number, _segment.c.lengths).where(is_shown)).all()
    of_base = _chunk.c.knowledge_base_id == base_id
    there = connection.execute(select(_chunk.c.number).where(of_base)).scalars().all() if segments else ()
    gone, leaving, arriving = (
        [Range(*row) for row in connection.execute(select(table.c.first_number, table.c.end_number).where(*conditions))]
        for table, *conditions in (
            (_gone, _gone.c.knowledge_base_id == base_id),
            (_unseen, _unseen.c.knowledge_base_id == base_id, _unseen.c.is_leaving),
            (_unseen, _unseen.c.knowledge_base_id == base_id, ~_unseen.c.is_leaving),
        )
    )
    numbers = np.array(there, np.int64)
    staying = numbers[outside(numbers, leaving)]
    return [part for first, lengths in segments for part in find_missing(first, lengths, staying, [*gone, *arriving])]
