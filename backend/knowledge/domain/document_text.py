"""A document's text as it is read page by page."""

from collections.abc import Sequence
from itertools import pairwise

from backend.knowledge.domain.knowledge import Chunk, Document
from backend.knowledge.domain.media_types import MARKDOWN, TEXT

_GAP = "\n\n"


def readable_text(document: Document, body: bytes, chunks: Sequence[Chunk]) -> str:
    """Return text and Markdown as they were put, other formats from their chunks with headings as Markdown's."""
    if document.media_type in (TEXT, MARKDOWN):
        return body.decode("utf-8-sig")
    paths = [(), *(chunk.heading_path for chunk in chunks)]
    return _GAP.join(
        part
        for (before, path), chunk in zip(pairwise(paths), chunks, strict=True)
        for part in (*_new_headings(before, path), chunk.text)
    )


def _new_headings(before: Sequence[str], path: Sequence[str]) -> list[str]:
    same = 0
    while same < min(len(before), len(path)) and before[same] == path[same]:
        same += 1
    return [f"{'#' * (depth + 1)} {path[depth]}" for depth in range(same, len(path))]
