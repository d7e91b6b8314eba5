"""Passages of files that were stored under several names, found once."""

from collections.abc import Sequence

from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.ports.index import ChunkSearch


class JoinedCopies:
    """A `ChunkSearch` that gives a passage of the same bytes in a base once, with all the names it was found under.

    The first name in the order of names stands for it. Where copies take places of others, the ranking is read further,
    to `FUSION_DEPTH` at most.
    """

    def __init__(self, ranking: ChunkSearch) -> None:
        self._ranking = ranking

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best passages, best first."""
        hits = await self._ranking.search(base_ids, query, limit, filters)
        joined = join_copies(hits)
        if len(joined) < len(hits) == limit < FUSION_DEPTH:
            joined = join_copies(await self._ranking.search(base_ids, query, FUSION_DEPTH, filters))
        return joined[:limit]


def join_copies(hits: Sequence[ChunkHit]) -> tuple[ChunkHit, ...]:
    """Join hits of documents of a base with the same bytes; uploaded files are found by their ids, each by itself."""
    copies = dict[tuple[object, ...], list[ChunkHit]]()
    for hit in hits:
        where = hit.chunk.ordinal, hit.chunk.heading_path, hit.chunk.text
        is_copy = hit.file_id is None and hit.sha256
        same = (hit.knowledge_base_id, hit.sha256, *where) if is_copy else (hit.chunk.id,)
        copies.setdefault(same, []).append(hit)
    return tuple(each[0] if len(each) == 1 else _join(each) for each in copies.values())


def _join(copies: Sequence[ChunkHit]) -> ChunkHit:
    first, *others = sorted(copies, key=lambda hit: hit.document_name)
    names = tuple(hit.document_name for hit in others)
    return first.model_copy(update={"score": max(hit.score for hit in copies), "other_names": names})
