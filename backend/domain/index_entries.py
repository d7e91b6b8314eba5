"""A chunk as an index holds it."""

from collections import Counter
from collections.abc import Mapping

from backend.domain.knowledge import Chunk
from backend.domain.tokenizing import tokenize
from shared.models.values import Value


class IndexEntry(Value):
    """The index tokens of a chunk, in text order."""

    tokens: tuple[str, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each token stands in the chunk."""
        return Counter(self.tokens)


def index_entry(chunk: Chunk) -> IndexEntry:
    """Index a chunk under its text and the headings above it."""
    return IndexEntry(tokens=tuple(tokenize("\n".join((*chunk.heading_path, chunk.text)))))
