"""Pieces of documents as searches find them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from pydantic import Field

from backend.search.domain.filters import Attributes
from shared.models.values import Place, Value


def join_headings(heading_path: Iterable[str], text: str) -> str:
    """Return what a chunk is found by, in words and in meaning: the headings above it, a line each, and its text."""
    return "\n".join((*heading_path, text))


CHUNKS_AT_ONCE = 256
"""Few enough that to index them takes some ten milliseconds, and to store them is a short transaction."""


class Range(NamedTuple):
    """Numbers of chunks of a base, from the first to before the end.

    Each chunk of a base has a number, in the order of storing; none is used twice, and those of a document follow one
    another.
    """

    first_number: int
    end_number: int


ALL_NUMBERS = Range(0, 2**31 - 1)
Allowed = Mapping[str, Sequence[Range]] | None
"""By base the chunks that may be found; None allows all."""


class Found(NamedTuple):
    """A chunk that was found, before its text is read."""

    base_id: str
    number: int
    score: float


class Chunk(Value):
    """A piece of a document, in document order; `heading_path` runs from the outermost heading in."""

    id: str
    document_id: str
    ordinal: int
    heading_path: tuple[str, ...]
    text: str
    tokens: int
    place: Place | None = None

    @property
    def join_headings(self) -> str:
        """What the chunk is found by."""
        return join_headings(self.heading_path, self.text)


class ChunkHit(Value):
    """A chunk that a search found, and its document; a higher score is a better hit, between 0 and 1.

    `similarity` is the cosine between the vectors of chunk and query, -1 to 1, where both have one.
    `has_words_of_query` is False for a chunk that only its meaning found; `share_of_words` is how much of the query's
    words, each weighed by its rarity, it has, from 0 to 1. `sha256` is that of the document's bytes; `other_names` are
    those of other documents of the base with the same bytes, in which the passage was found as well.
    """

    knowledge_base_id: str
    document_id: str
    document_name: str
    chunk: Chunk
    score: float
    file_id: str | None = None
    filename: str | None = None
    attributes: Attributes = Field(default={})
    similarity: float | None = None
    has_words_of_query: bool = True
    share_of_words: float = 0.0
    sha256: str = ""
    other_names: tuple[str, ...] = ()

    @property
    def source_id(self) -> str:
        """The id that results and citations show."""
        return self.file_id or self.document_id

    @property
    def title(self) -> str:
        """The name that results and citations show."""
        return self.filename or self.document_name


STORED_FIELDS = ("number", "id", "ordinal", "heading_path", "text", "tokens", "place")
"""What is stored of a chunk, by the names of its columns."""


def chunk_in(row: Mapping[Any, Any], document_id: str) -> Chunk:
    """Read a chunk of this document, as it is stored, from a row that may hold more."""
    return Chunk(
        id=row["id"],
        document_id=document_id,
        ordinal=row["ordinal"],
        heading_path=tuple(orjson.loads(row["heading_path"])),
        text=row["text"],
        tokens=row["tokens"],
        place=Place.model_validate_json(row["place"]) if row["place"] else None,
    )


def attributes_in(stored: str | None) -> dict[str, Any]:
    """Read pairs of keys and values, as they are stored; the release before stores none."""
    return orjson.loads(stored) if stored else {}
