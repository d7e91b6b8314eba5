"""What the backend and its children say to each other: frames of JSON.

A frame begins with its length. To a child go a `Job` and the file; from it come `PieceCount`, one `Batch` after another
and `Ended`, or `Refused` at any place. Before these it may send pictures, each behind a `PictureSent`; it goes on when
it has been answered with a `PictureAnswer`.
"""

import struct
from typing import Literal, TypeAlias

import orjson
from pydantic import Field, TypeAdapter

from backend.extraction.formats.cutting import SizedPiece
from backend.search.domain.chunks import CHUNKS_AT_ONCE
from shared.models.values import Value

HEAD = struct.Struct("<I")


class Job(Value):
    """A file to be read, of `size_bytes`, with its encoding if told; and the limits of its content and CPU time."""

    media_type: str
    size_bytes: int
    blocks: int
    text_characters: int
    chunks: int
    cpu_seconds: int
    charset: str | None = None
    drawing_seconds: int = 0
    """CPU time for pictures, beyond the other; without any, none is sent."""


class PictureSent(Value):
    """A JPEG of so many bytes follows, whose text is wanted."""

    kind: Literal["picture"] = "picture"
    size_bytes: int


class PieceCount(Value):
    """The file was read; so many pieces follow. The notes say what they do not hold."""

    kind: Literal["cut"] = "cut"
    chunk_count: int
    notes: tuple[str, ...] = ()
    unread_pictures: int = 0


class Batch(Value):
    """Successive pieces."""

    kind: Literal["batch"] = "batch"
    pieces: tuple[SizedPiece, ...] = Field(max_length=CHUNKS_AT_ONCE)


class Ended(Value):
    """All pieces were sent."""

    kind: Literal["ended"] = "ended"


class Refused(Value):
    """The file is refused."""

    kind: Literal["refused"] = "refused"
    outcome: Literal["invalid", "too_large"]
    message: str


Answer: TypeAlias = PieceCount | Batch | Ended | Refused | PictureSent
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


def as_frame(value: Value) -> bytes:
    """Write a frame."""
    said = orjson.dumps(value.model_dump())
    return HEAD.pack(len(said)) + said
