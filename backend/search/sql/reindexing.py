"""Indexing anew all that is stored, beside searches and changes: for an index that is damaged or in parts lost.

Searches go on by the segments that are there: each is replaced in one transaction by what its chunks' texts say. What
a process that ends has not reached is replaced by the upkeep of the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
from sqlalchemy import Connection, func, select, update

from backend.foundation.sql.database import Database
from backend.search.domain.chunks import ALL_NUMBERS, CHUNKS_AT_ONCE, Range
from backend.search.domain.tokenizing import TOKENS_VERSION
from backend.search.ports.index import IndexProgress
from backend.search.sql import tables
from backend.search.sql.chunk_rows import IS_OF_DOCUMENT
from backend.search.sql.segment_rows import PackedSegment, SegmentRows, lock_base
from backend.search.sql.segments import pack_texts
from backend.search.sql.tables import IS_UNINDEXED
from backend.search.sql.upkeep import IndexUpkeep, read_found_by
from backend.search.sql.word_postings import gaps, outside
from shared.clock import Clock

_base, _document, _chunk, _segment = tables.knowledge_base, tables.document, tables.chunk, tables.index_segment

UNKNOWN_TOKENS = 0
"""The version of tokens of a segment that is to be replaced, whoever wrote it."""


class Reindexing:
    """Replaces the index of one database."""

    def __init__(self, database: Database, clock: Clock, upkeep: IndexUpkeep) -> None:
        self._database = database
        self._upkeep = upkeep
        self._segments = SegmentRows(clock)

    async def run(self) -> AsyncIterator[IndexProgress]:
        """Replace all segments, and add those that are missing; yield how far it is."""
        await self._upkeep.note_deleted(everywhere=True)
        await self._database.write(_doubt_segments)
        yield (progress := await self._database.read(_count))
        for base_id in await self._database.read(_find_bases):
            await self._index_missing(base_id)
            yield (progress := await self._database.read(_count))
        while await self._upkeep.renew_next():
            yield (progress := await self._database.read(_count))
        yield progress._replace(indexed_chunks=progress.chunks)  # those without a word are in no count of a segment

    async def _index_missing(self, base_id: str) -> None:
        """Index chunks that are in no segment, until nobody changes them meanwhile."""
        while missing := await self._database.snapshot(partial(_find_missing, base_id=base_id)):
            added = [await self._index(base_id, numbers) for numbers in missing]
            if not any(added):
                return

    async def _index(self, base_id: str, numbers: Range) -> bool:
        texts = await self._database.read(partial(read_found_by, base_id=base_id, numbers=numbers, gone=()))
        segment = await asyncio.to_thread(pack_texts, texts)
        add = partial(self._add, base_id=base_id, numbers=numbers, segment=segment)
        return await self._database.write(add)

    def _add(self, connection: Connection, base_id: str, numbers: Range, segment: PackedSegment) -> bool:
        """Show the segment of chunks; not where some have gone meanwhile, or are in another one."""
        is_theirs = lock_base(connection, base_id) and numbers in _find_missing(connection, base_id, numbers)
        if is_theirs:
            self._segments.add(connection, base_id, numbers.first_number, segment, is_visible=True)
        return is_theirs


def _doubt_segments(connection: Connection) -> None:
    connection.execute(update(_segment).where(_segment.c.is_visible).values(tokens_version=UNKNOWN_TOKENS))


def _count(connection: Connection) -> IndexProgress:
    is_renewed = _segment.c.is_visible & (_segment.c.tokens_version == TOKENS_VERSION)
    size = func.coalesce(func.sum(_segment.c.chunk_count), 0)
    chunks = select(func.coalesce(func.sum(_base.c.chunk_count), 0))
    renewed = int(connection.execute(select(size).where(is_renewed)).scalar_one())
    return IndexProgress(renewed, int(connection.execute(chunks).scalar_one()))


def _find_bases(connection: Connection) -> Sequence[str]:
    return connection.execute(select(_base.c.id).where(_base.c.chunk_count > 0).order_by(_base.c.id)).scalars().all()


def _find_missing(connection: Connection, base_id: str, within: Range = ALL_NUMBERS) -> list[Range]:
    """Return the chunks of documents that no segment covers, as many at once as one segment is made of."""
    are_within = _chunk.c.number.between(within.first_number, within.end_number - 1)
    of_base = (_chunk.c.knowledge_base_id == base_id) & (_document.c.knowledge_base_id == base_id) & ~IS_UNINDEXED
    query = select(_chunk.c.number).join_from(_chunk, _document, IS_OF_DOCUMENT).where(of_base, are_within)
    numbers = np.sort(np.fromiter(connection.execute(query).scalars(), np.int64))
    shown = (_segment.c.knowledge_base_id == base_id) & _segment.c.is_visible
    touches = (_segment.c.first_number < within.end_number) & (_segment.c.end_number > within.first_number)
    ends = select(_segment.c.first_number, _segment.c.end_number).where(shown, touches)
    covered = [Range(*row) for row in connection.execute(ends)]
    missing = numbers[outside(numbers, covered)]
    if not len(missing):
        return []
    whole = Range(int(missing[0]), int(missing[-1]) + 1)
    between = [whole.first_number, *chain.from_iterable(gaps(missing, whole)), whole.end_number]
    runs = (Range(*each) for each in zip(between[::2], between[1::2], strict=True))
    return [
        Range(first, min(first + CHUNKS_AT_ONCE, run.end_number))
        for run in runs
        for first in range(run.first_number, run.end_number, CHUNKS_AT_ONCE)
    ]
