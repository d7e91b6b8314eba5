"""What reads and cuts files, loaded at its first use.

The library of a format is loaded with the first document of the format, NumPy with the first one that is cut here.
"""

from collections.abc import Callable, Iterable, Sequence

from backend.extraction.domain.blocks import Block
from backend.extraction.domain.media_types import CSV, DOCX, EMAIL, HTML, JSON, JSON_LINES, MARKDOWN, PDF, PPTX, XLSX
from backend.extraction.formats.pieces import ContentLimits, PieceBatch

Reader = Callable[[bytes], Iterable[Block]]


def read_blocks(body: bytes, media_type: str) -> Iterable[Block]:
    """Read a document, as plain text where its type is no other; some formats are read as the blocks are asked for.

    Raises:
        InvalidRequest: the document is malformed. It may be raised while blocks are asked for.
        PayloadTooLarge: it has too many pages or cells, or is too large unpacked; likewise.
    """
    return (_paged_reader(media_type) or _structured_reader(media_type) or _text_reader(media_type))(body)


def _paged_reader(media_type: str) -> Reader | None:
    if media_type == PDF:
        from backend.extraction.formats.pdf import read_pdf as read
    elif media_type == DOCX:
        from backend.extraction.formats.docx import read_docx as read
    elif media_type == PPTX:
        from backend.extraction.formats.pptx import read_pptx as read
    elif media_type == XLSX:
        from backend.extraction.formats.xlsx import read_xlsx as read
    else:
        return None
    return read


def _structured_reader(media_type: str) -> Reader | None:
    if media_type == CSV:
        from backend.extraction.formats.delimited import read_csv as read
    elif media_type == JSON:
        from backend.extraction.formats.json_values import read_json_document as read
    elif media_type == JSON_LINES:
        from backend.extraction.formats.json_values import read_json_lines as read
    elif media_type == EMAIL:
        from backend.extraction.formats.email import read_email as read
    else:
        return None
    return read


def _text_reader(media_type: str) -> Reader:
    if media_type == MARKDOWN:
        from backend.extraction.formats.markdown import read_markdown as read
    elif media_type == HTML:
        from backend.extraction.formats.html import read_html as read
    else:
        from backend.extraction.formats.text import read_plain_text as read
    return read


def cut_here(body: bytes, media_type: str, limits: ContentLimits) -> tuple[int, Sequence[PieceBatch]]:
    """Cut a file in this process, in the thread of the caller; return how many pieces it has, and the pieces.

    Raises:
        PayloadTooLarge: it holds more than `limits` allow.
        InvalidRequest: it is malformed, not UTF-8, or without any text.
    """
    from backend.extraction.formats.cutting import cut_file

    count, batches = cut_file(body, media_type, limits)
    return count, tuple(batches)
