"""Descriptions of bases for restricted members, checked against what the bases hold."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from backend.knowledge.domain.description_rules import (
    LeftOut,
    list_described_texts,
    places_of,
    queries_of,
    why_left_out,
    without_texts,
)
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase
from backend.knowledge.ports.knowledge import DescriptionObserver
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.shared_runs import DESCRIPTION_RUNS, sequences_of
from backend.search.ports.index import ChunkSearch, WordRuns
from shared.models.execution import AccessMode

MAX_KEPT_VERDICTS = 4_096
"""The size of the cache of verdicts, each on one version of a base; the oldest is dropped first."""

MAX_COMPARED_CHUNKS = 24
"""Chunks beside which one text is judged: as many as a restricted search brings."""

_Described = tuple[str, int, tuple[str, ...]]
_Verdict = Mapping[str, LeftOut]


class _Case(NamedTuple):
    """A text, the chunks beside which it is judged, and whether the base holds a long run of its words."""

    text: str
    hits: Sequence[ChunkHit]
    shares_run: bool


class SafeDescriptions:
    """Leaves out a name, a hint or a keyword that reveals a base's content or gives instructions to a model.

    The verdict depends on nothing but the description and the base's version, so it is cached by both.
    """

    def __init__(self, words: WordRuns, search: ChunkSearch, observer: DescriptionObserver) -> None:
        self._words = words
        self._search = search
        self._observer = observer
        self._verdicts: dict[_Described, _Verdict] = {}

    async def show(self, bindings: Sequence[Binding]) -> tuple[Binding, ...]:
        """Return bindings with the parts of each base's description that its member may see.

        Raises:
            Unavailable: the database is away.
        """
        return tuple([await self._show(binding) for binding in bindings])

    async def places_left_out(self, base: KnowledgeBase) -> Mapping[str, LeftOut]:
        """Return the fields that restricted members are not shown, and why.

        Raises:
            Unavailable: the database is away.
        """
        return places_of(base, await self._find_left_out(base))

    async def list_areas(self, bases: Iterable[KnowledgeBase]) -> tuple[str, ...]:
        """Return the keywords that restricted members are shown, each once: what findings can be about.

        Raises:
            Unavailable: the database is away.
        """
        shown = [without_texts(base, await self._find_left_out(base)) for base in bases]
        return tuple(dict.fromkeys(word for base in shown for word in base.routing_keywords))

    async def _show(self, binding: Binding) -> Binding:
        if binding.role.access_mode is AccessMode.FULL:
            return binding
        left_out = await self._find_left_out(binding.base)
        return binding.model_copy(update={"base": without_texts(binding.base, left_out)})

    async def _find_left_out(self, base: KnowledgeBase) -> _Verdict:
        described = (base.id, base.version, list_described_texts(base))
        verdict = self._verdicts.get(described)
        if verdict is None:
            queries = await asyncio.to_thread(_queries_of_all, described[2])
            cases = [await self._case(base.id, text, of_text) for text, of_text in queries.items()]
            verdict = await asyncio.to_thread(_judge_all, cases)
            if verdict:
                self._observer.texts_left_out(base.id, len(verdict))
            self._keep(described, verdict)
        return verdict

    async def _case(self, base_id: str, text: str, queries: Sequence[str]) -> _Case:
        found = [await self._search.search([base_id], query, MAX_COMPARED_CHUNKS) for query in queries]
        sequences = sequences_of(text, DESCRIPTION_RUNS)
        shares_run = bool(sequences) and await self._words.holds_run([base_id], sequences)
        return _Case(text, _best_of_each(found), shares_run)

    def _keep(self, described: _Described, verdict: _Verdict) -> None:
        if len(self._verdicts) >= MAX_KEPT_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[described] = verdict


def _queries_of_all(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {text: queries_of(text) for text in texts}


def _judge_all(cases: Iterable[_Case]) -> _Verdict:
    judged = {case.text: why_left_out(case.text, case.hits, shares_run=case.shares_run) for case in cases}
    return {text: why for text, why in judged.items() if why is not None}


def _best_of_each(found: Sequence[Sequence[ChunkHit]]) -> list[ChunkHit]:
    """Return the first hits of several searches in turns, each chunk once."""
    in_turns = chain.from_iterable(zip_longest(*found))
    distinct = {hit.chunk.id: hit for hit in in_turns if hit is not None}
    return list(islice(distinct.values(), MAX_COMPARED_CHUNKS))
