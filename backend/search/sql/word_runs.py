"""The look-up whether words come from a base: the index gives candidate chunks, and their texts decide."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import orjson
from sqlalchemy import Connection, select

from backend.foundation.sql.database import Database, compute_off_event_loop
from backend.foundation.sql.parameters import list_parameter
from backend.foundation.sql.statements import Statement
from backend.search.domain.chunks import join_headings
from backend.search.domain.shared_runs import Needed, WordSequence, find_needed, holds_any, join_runs, tokens_of
from backend.search.sql import tables
from backend.search.sql.chosen import LoadedOnce
from backend.search.sql.chunk_rows import IS_OF_DOCUMENT, are_numbered_chunks

if TYPE_CHECKING:
    from backend.search.sql.segment_index import SegmentIndex

_document = tables.document
_chunk = tables.chunk

SEAM_CHARACTERS = 300
"""How much text is read on each side of the seam of two chunks: more than the words of a run across it."""

RUNS_AT_ONCE = 64
"""How many runs one unit of work looks up, so that it takes milliseconds even for a long text."""


class SqlWordRuns:
    """The `WordRuns` over a `Database`, with the search index of its dialect."""

    def __init__(self, database: Database, index: "LoadedOnce[SegmentIndex]") -> None:
        self._database = database
        self._index = index
        self._find_texts = Statement(
            select(_document.c.id, _chunk.c.number, _chunk.c.heading_path, _chunk.c.text)
            .join_from(_chunk, _document, IS_OF_DOCUMENT)
            .where(are_numbered_chunks(database.dialect))
            .order_by(_chunk.c.number)
        )

    async def holds_run(self, base_ids: Sequence[str], sequences: Sequence[WordSequence]) -> bool:
        """Look up at most `RUNS_AT_ONCE` runs at a time, in one base after the other.

        Each look-up sees one state of the database: a merge between its statements would take away the pages of
        segments that it has just read, and with them the words that must not leave.
        """
        index = await self._index()
        for some in _some_at_once(sequences):

            def work(connection: Connection, some: Sequence[WordSequence] = some) -> bool:
                return any(self._holds(connection, index, base_id, some) for base_id in base_ids)

            if await self._database.snapshot(work):
                return True
        return False

    def _holds(
        self, connection: Connection, index: "SegmentIndex", base_id: str, sequences: Sequence[WordSequence]
    ) -> bool:
        tokens = {token for sequence in sequences for found in tokens_of(sequence) for token in found}
        counts = index.chunk_counts(connection, base_id, sorted(tokens))
        needed = {one for sequence in sequences for one in find_needed(sequence, counts)}
        if not needed:
            return False
        wanted = sorted({token for one in needed for token in one.tokens})
        numbers = index.numbers(connection, base_id, wanted)
        chunks, seams = compute_off_event_loop(connection, lambda: _candidates(needed, numbers))
        if not seams:
            return False
        texts = self._texts(connection, base_id, chunks, seams)
        runs = join_runs(sequences)
        return compute_off_event_loop(connection, lambda: any(holds_any(text, runs) for text in texts))

    def _texts(
        self, connection: Connection, base_id: str, chunks: Collection[int], seams: Collection[int]
    ) -> Iterator[str]:
        """Yield the text of each of `chunks`, and the text around the seam behind each chunk of `seams`."""
        numbers = sorted({*seams, *(number + 1 for number in seams)})
        asked = {"base_id": base_id, "numbers": list_parameter(numbers, self._database.dialect)}
        found = self._find_texts.rows(connection, asked)
        return chain(
            (join_headings(orjson.loads(row["heading_path"]), row["text"]) for row in found if row["number"] in chunks),
            (
                f"{row['text'][-SEAM_CHARACTERS:]}\n{behind['text'][:SEAM_CHARACTERS]}"
                for row, behind in pairwise(found)
                if row["number"] in seams and (behind["id"], behind["number"]) == (row["id"], row["number"] + 1)
            ),
        )


def _some_at_once(sequences: Iterable[WordSequence]) -> Iterator[list[WordSequence]]:
    """Split sequences into groups of at most `RUNS_AT_ONCE` runs; parts overlap, so that no run is lost."""
    some: list[WordSequence] = []
    count = 0
    for words, run in sequences:
        for start in range(0, len(words) - run + 1, RUNS_AT_ONCE):
            part = WordSequence(words[start : start + RUNS_AT_ONCE + run - 1], run)
            part_count = len(part.words) - run + 1
            if some and count + part_count > RUNS_AT_ONCE:
                yield some
                some, count = [], 0
            some.append(part)
            count += part_count
    if some:
        yield some


def _candidates(needed: Iterable[Needed], numbers: Mapping[str, Collection[int]]) -> tuple[set[int], set[int]]:
    """Return the chunks that hold enough tokens alone, and the chunks that do so together with the next chunk."""
    in_chunk, around_cut = set[int](), set[int]()
    for tokens, least in needed:
        holders = [numbers.get(token, ()) for token in tokens]
        in_chunk |= _find_held_often(holders, least)
        around_cut |= _find_held_often([{*found, *(number - 1 for number in found)} for found in holders], least)
    return in_chunk, around_cut


def _find_held_often(holders: Iterable[Collection[int]], least: int) -> set[int]:
    counted = Counter(chain.from_iterable(holders))
    return {number for number, times in counted.items() if times >= least}
