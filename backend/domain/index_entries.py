"""A chunk as an index holds it."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

from backend.domain.knowledge import Chunk, Document
from backend.domain.tokenizing import tokenize
from shared.models.values import Value

_KEY_BYTES = 8
_KEY_BITS = 62


class IndexEntry(Value):
    """The tokens of a chunk, and a key that orders equal scores by content instead of arrival."""

    chunk_id: str
    content_key: int
    tokens: tuple[str, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each token stands in the chunk."""
        return Counter(self.tokens)


def index_entry(document: Document, chunk: Chunk) -> IndexEntry:
    """Index a chunk under its text and the headings above it."""
    return IndexEntry(
        chunk_id=chunk.id,
        content_key=_content_key(document, chunk),
        tokens=tuple(tokenize("\n".join((*chunk.heading_path, chunk.text)))),
    )


def _content_key(document: Document, chunk: Chunk) -> int:
    """Make a key from the text first; name and place tell equal texts of one base apart."""
    content = "\0".join((chunk.text, *chunk.heading_path, document.name, str(chunk.ordinal)))
    return int.from_bytes(sha256(content.encode()).digest()[:_KEY_BYTES]) >> (8 * _KEY_BYTES - _KEY_BITS)
