"""Chunks as an index holds them."""

from hypothesis import given
from hypothesis import strategies as st

from backend.search.domain.chunks import Chunk
from backend.search.domain.index_entries import index_entries, index_entry


def chunk(text: str, *heading_path: str) -> Chunk:
    return Chunk(id="chunk_a", document_id="doc_a", ordinal=0, heading_path=heading_path, text=text, tokens=1)


def test_a_chunk_is_found_by_its_headings_too() -> None:
    entry = index_entry(chunk("Travel costs are paid.", "Costs", "差旅"))
    assert list(entry.tokens) == ["costs", "差旅", "travel", "costs", "are", "paid"]
    assert entry.counts == {"costs": 2, "差旅": 1, "travel": 1, "are": 1, "paid": 1}


@given(st.lists(st.text(st.sampled_from("ab 差旅费é"), max_size=30), max_size=5))
def test_the_chunks_of_a_document_are_indexed_alike_and_share_their_words(texts: list[str]) -> None:
    entries = index_entries(chunk(text) for text in texts)
    assert entries == [index_entry(chunk(text)) for text in texts]
    words = [word for entry in entries for word in entry.tokens]
    assert len({id(word) for word in words}) == len(set(words))
