"""What reads files; the library of a format is loaded with the first document of the format."""

from collections.abc import Iterable
from pkgutil import resolve_name

from backend.extraction.domain.blocks import Block, Note
from backend.extraction.domain.media_types import FORMATS, TEXT
from backend.extraction.formats.text import decode_as


def read_blocks(body: bytes, media_type: str, charset: str | None = None) -> Iterable[Block]:
    """Read a document, as plain text where its type is no other; some formats are read as the blocks are asked for.

    A text is read by its encoding, where that is told.

    Raises:
        InvalidRequest: the document is malformed. It may be raised while blocks are asked for.
        PayloadTooLarge: it has too many pages or cells, or is too large unpacked; likewise.
    """
    form = FORMATS.get(media_type, FORMATS[TEXT])
    if charset is not None and form.is_text:
        body = decode_as(body, charset).encode()
    return resolve_name(f"{__package__}.{form.reader}")(body)


def read_email(body: bytes) -> Iterable[Block]:
    """Read an e-mail, and what is attached to it."""
    from backend.extraction.formats.mail.messages import read_message

    return read_message(body, read_blocks)


def read_outlook(body: bytes) -> Iterable[Block]:
    """Read a message that Outlook has saved, and what is attached to it."""
    from backend.extraction.formats.mail.messages import read_parsed
    from backend.extraction.formats.mail.outlook import read_saved_message

    message, notes = read_saved_message(body)
    yield from read_parsed(lambda: message, read_blocks)
    yield from (Note(text=note) for note in notes)


def read_zip(body: bytes) -> Iterable[Block]:
    """Read the files of an archive."""
    from backend.extraction.formats.zipped import read_files

    return read_files(body, read_blocks)
