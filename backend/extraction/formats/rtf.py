"""RTF: its text, tables as rows of cells."""

from collections.abc import Iterator

from striprtf.striprtf import rtf_to_text  # pyright: ignore[reportUnknownVariableType]  (it has no types)

from backend.extraction.domain.chunking import Block
from backend.extraction.formats.text import MALFORMED, paragraphs_of, storable
from shared.errors import InvalidRequest

_START = b"{\\rtf"


def read_rtf(body: bytes) -> Iterator[Block]:
    """Yield the paragraphs.

    Raises:
        InvalidRequest: the file is no RTF, or damaged.
    """
    if not body.startswith(_START):
        raise InvalidRequest("The file is no RTF.", param="body")
    try:
        text = str(rtf_to_text(body.decode("latin-1"), errors="replace"))  # pyright: ignore[reportUnknownArgumentType]
    except MALFORMED as error:
        raise InvalidRequest("The RTF cannot be read; it may be damaged.", param="body") from error
    for line in storable(text).split("\n"):
        yield from paragraphs_of(line)
