"""Chunks as an index holds them."""

from backend.search.domain.chunks import Chunk
from backend.search.domain.tokenizing import tokenize


def test_a_chunk_is_found_by_its_headings_too() -> None:
    text, path = "Travel costs are paid.", ("Costs", "差旅")
    chunk = Chunk(id="chunk_a", document_id="doc_a", ordinal=0, heading_path=path, text=text, tokens=1)
    assert tokenize(chunk.join_headings) == ["costs", "差旅", "travel", "costs", "are", "paid"]
