"""The protocol between the backend and its children: frames of JSON followed by bytes.

A frame begins with the lengths of both parts. To a child go a `Job` and the file; from it come `PieceCount`, one
`Batch` after another and `Ended`, or `Refused` at any place.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias

import orjson
from pydantic import TypeAdapter

from backend.extraction.formats.pieces import IndexedPiece, PieceBatch
from backend.search.domain.index_entries import PackedSegment
from shared.models.values import Value

HEAD = struct.Struct("<II")


class Job(Value):
    """A file to be read, of `size_bytes`; and the limits of its content and of the CPU time."""

    media_type: str
    size_bytes: int
    blocks: int
    text_characters: int
    chunks: int
    cpu_seconds: int


class PieceCount(Value):
    """The file was read; so many pieces follow."""

    kind: Literal["cut"] = "cut"
    chunk_count: int


class Batch(Value):
    """Pieces; behind it come their lengths in index tokens and their pages, as bytes of these sizes."""

    kind: Literal["batch"] = "batch"
    pieces: tuple[IndexedPiece, ...]
    bits: int
    token_count: int
    pages: tuple[int, ...]
    sizes: tuple[int, ...]


class Ended(Value):
    """All pieces were sent."""

    kind: Literal["ended"] = "ended"


class Refused(Value):
    """The file is refused."""

    kind: Literal["refused"] = "refused"
    outcome: Literal["invalid", "too_large"]
    message: str


Answer: TypeAlias = PieceCount | Batch | Ended | Refused
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


def as_frame(value: Value, attached: Sequence[bytes] = ()) -> bytes:
    """Write a frame."""
    said = orjson.dumps(value.model_dump())
    return b"".join((HEAD.pack(len(said), sum(map(len, attached))), said, *attached))


def batch_frame(batch: PieceBatch) -> bytes:
    """Write the frame of a batch."""
    segment = batch.segment
    attached = [segment.lengths, *segment.pages.values()]
    value = Batch(
        pieces=tuple(batch.pieces),
        bits=segment.bits,
        token_count=segment.token_count,
        pages=tuple(segment.pages),
        sizes=tuple(map(len, attached)),
    )
    return as_frame(value, attached)


def to_batch(value: Batch, attached: bytes) -> PieceBatch:
    """Read the batch of a frame.

    Raises:
        ValueError: the parts do not fit each other.
    """
    if sum(value.sizes) != len(attached) or len(value.sizes) != len(value.pages) + 1:
        raise ValueError("The sizes of a frame do not fit its bytes.")
    lengths, *pages = (attached[start:end] for start, end in pairwise(accumulate(value.sizes, initial=0)))
    segment = PackedSegment(value.bits, lengths, dict(zip(value.pages, pages, strict=True)), value.token_count)
    return PieceBatch(value.pieces, segment)
