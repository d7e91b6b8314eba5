"""Passages of the same bytes under several names."""

from collections.abc import Sequence

from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.services.joined_copies import JoinedCopies


def hit(name: str, *, base: str = "kb_a", text: str = "The pump.", **fields: str) -> ChunkHit:
    chunk = Chunk(id=f"{base} {name}", document_id=name, ordinal=0, heading_path=(), text=text, tokens=3)
    found = ChunkHit(
        knowledge_base_id=base, document_id=name, document_name=name, chunk=chunk, score=0.5, sha256="same"
    )
    return found.model_copy(update=fields)


class Ranking:
    """Gives the first hits of a list, and keeps how many were asked for."""

    def __init__(self, *hits: ChunkHit) -> None:
        self._hits = hits
        self.limits = list[int]()

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        self.limits.append(limit)
        return self._hits[:limit]


async def names(ranking: Ranking, limit: int = 10) -> list[tuple[str, tuple[str, ...]]]:
    found = await JoinedCopies(ranking).search(["kb_a", "kb_b"], "pump", limit)
    return [(one.document_name, one.other_names) for one in found]


async def test_copies_are_one_hit_with_all_names_whichever_was_found_first() -> None:
    assert await names(Ranking(hit("b.md"), hit("c.md"), hit("a.md"))) == [("a.md", ("b.md", "c.md"))]


async def test_others_are_no_copies() -> None:
    others = (
        hit("a"),
        hit("b", sha256="other"),
        hit("c", base="kb_b"),
        hit("d", text="Else."),
        hit("e", file_id="f"),
    )
    assert await names(Ranking(*others)) == [(name, ()) for name in "abcde"]


async def test_what_copies_took_the_place_of_is_found_too() -> None:
    ranking = Ranking(hit("a"), hit("b"), hit("c", sha256="other"))
    assert await names(ranking, limit=2) == [("a", ("b",)), ("c", ())]
    assert ranking.limits == [2, FUSION_DEPTH]
    plain = Ranking(hit("a"), hit("c", sha256="other"))
    assert len(await names(plain, limit=2)) == 2
    assert plain.limits == [2]
