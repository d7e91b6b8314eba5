"""E-mail (RFC 5322, MIME): its headers, its text, and those attachments that are documents themselves."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from email.errors import MessageError
from email.headerregistry import DateHeader
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from io import BytesIO

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.domain.media_types import EMAIL, FORMATS, HTML, RTF, TEXT, media_type_of
from backend.extraction.formats.encodings import is_encoded_as, resolve_encoding
from backend.extraction.formats.text import MALFORMED, decode, storable
from shared.errors import InvalidRequest, PayloadTooLarge

MAX_PARTS = 1_000
MAX_DEPTH = 30
"""How deep parts lie in each other at most; forwarded five times, a message of mail programs has a depth of 15."""

MAX_ATTACHMENTS = 100
MAX_HEADER_CHARACTERS = 10_000
"""A longer value of a header is not shown: the library's time for one grows faster than its length."""

_SHOWN = ("From", "To", "Cc", "Subject", "Date")
_KNOWN = re.compile(rb"^(?:From|To|Cc|Subject|Date|Received|Message-ID|MIME-Version|Content-Type):", re.I | re.M)
_HEAD_BYTES = 256 * 1024
_BLANKS = re.compile(rb"\s+")

_MALFORMED = (*MALFORMED, MessageError)

ReadBlocks = Callable[[bytes, str], Iterable[Block]]
"""Reads a document of a media type."""


def read_message(body: bytes, read_blocks: ReadBlocks) -> Iterator[Block]:
    """Yield the subject as a heading, the headers, the text, and the attachments under headings of their names.

    `read_blocks` reads what it holds.

    Raises:
        InvalidRequest: the file is no e-mail, or its parts lie too deep in each other.
        PayloadTooLarge: it has too many parts.
    """
    if not _KNOWN.search(body[:_HEAD_BYTES].replace(b"\r\n", b"\n").partition(b"\n\n")[0]):
        raise InvalidRequest("The file is no e-mail: it begins with none of an e-mail's headers.", param="body")
    return read_parsed(lambda: _parse(body), read_blocks)


def read_parsed(parse: Callable[[], EmailMessage], read_blocks: ReadBlocks) -> Iterator[Block]:
    """Yield the blocks of what `parse` returns.

    Raises:
        InvalidRequest: its parts lie too deep in each other, or it cannot be read.
    """
    try:
        yield from _Mail(read_blocks).blocks(parse(), 1)
    except RecursionError:
        raise InvalidRequest(_TOO_DEEP, param="body") from None
    except _MALFORMED as error:
        raise InvalidRequest("The e-mail cannot be read; it may be damaged.", param="body") from error


_TOO_DEEP = f"The e-mail has parts that lie more than {MAX_DEPTH} deep in each other."


def _parse(body: bytes) -> EmailMessage:
    message = BytesParser(EmailMessage, policy=default).parse(BytesIO(body))
    _check_parts(message)
    return message


def _check_parts(message: EmailMessage) -> None:
    waiting, count = [(message, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise InvalidRequest(_TOO_DEEP, param="body")
        if count > MAX_PARTS:
            raise PayloadTooLarge(f"The e-mail has more than {MAX_PARTS} parts.", param="body")
        waiting += [(inner, depth + 1) for inner in _inner(part)]


class _Mail:
    """Reads one file; it counts the attachments, also those of messages inside the message."""

    def __init__(self, read_blocks: ReadBlocks) -> None:
        self._read_blocks = read_blocks
        self._attachments = 0
        self._depth = 0

    def blocks(self, message: EmailMessage, level: int) -> Iterator[Block]:
        yield Heading(level=level, text=_header(message, "Subject") or "E-mail")
        shown = ((name, _header(message, name)) for name in _SHOWN)
        yield Paragraph(text="\n".join(f"{name}: {value}" for name, value in shown if value))
        attached = list[EmailMessage]()
        for part in _texts_of(message, attached):
            yield from self._text(part, level)
        for part in attached:
            yield from self._attachment(part, level + 1)

    def _attachment(self, part: EmailMessage, level: int) -> Iterator[Block]:
        name = " ".join(storable(part.get_filename() or "").split())[:200] or part.get_content_type()
        if part.get_content_type() == EMAIL:
            for message in _inner(part):
                yield from self.blocks(message, level)
            return
        yield Heading(level=level, text=f"Attachment: {name}")
        self._attachments += 1
        if self._attachments > MAX_ATTACHMENTS:
            yield Paragraph(text=f"{name} is left out: the e-mail has more than {MAX_ATTACHMENTS} attachments.")
            return
        try:
            yield from _below(self._document(part, name), level)
        except InvalidRequest as error:
            yield Paragraph(text=f"{name} is left out: {error.message}")

    def _document(self, part: EmailMessage, name: str) -> Iterable[Block]:
        body = _payload(part)
        media_type = media_type_of(part.get_content_type(), name, body)
        if media_type == EMAIL:
            return self._read_attached(body)
        return self._read_blocks(_as_utf8(part, body) if FORMATS[media_type].is_text else body, media_type)

    def _read_attached(self, body: bytes) -> Iterator[Block]:
        """Read a message that is attached as a file, which counts as one that is inside the message."""
        if self._depth >= MAX_DEPTH:
            raise InvalidRequest(_TOO_DEEP, param="body")
        self._depth += 1
        yield from self.blocks(_parse(body), 0)
        self._depth -= 1

    def _text(self, part: EmailMessage, level: int) -> Iterable[Block]:
        kind = part.get_content_type()
        return _below(self._read_blocks(_as_utf8(part, _payload(part)), kind), level)


def _inner(part: EmailMessage) -> list[EmailMessage]:
    return [one for one in part.iter_parts() if isinstance(one, EmailMessage)] if part.is_multipart() else []


def _texts_of(part: EmailMessage, attached: list[EmailMessage]) -> Iterator[EmailMessage]:
    """Yield the parts that are the message's text, and collect those that are attached to it."""
    kind = part.get_content_type()
    if kind == EMAIL or part.get_content_disposition() == "attachment" or part.get_filename():
        attached.append(part)
    elif kind == "multipart/alternative":
        yield from _texts_of_best(part, attached)
    elif part.is_multipart():
        for inner in _inner(part):
            yield from _texts_of(inner, attached)
    elif kind in (TEXT, HTML, RTF):
        yield part
    else:
        attached.append(part)


def _texts_of_best(part: EmailMessage, attached: list[EmailMessage]) -> Iterator[EmailMessage]:
    """Yield the plain text of those that say the same, else the last, which is the richest (RFC 2046, 5.1.4)."""
    inner = _inner(part)
    plain = [one for one in inner if one.get_content_type() == TEXT and _payload(one).strip()]
    for best in (plain or inner[-1:])[:1]:
        yield from _texts_of(best, attached)


def _below(blocks: Iterable[Block], level: int) -> Iterator[Block]:
    for block in blocks:
        yield Heading(level=block.level + level, text=block.text) if isinstance(block, Heading) else block


def _payload(part: EmailMessage) -> bytes:
    """Return the bytes of a part.

    Raises:
        InvalidRequest: they are said to be base64, and are not.
    """
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64":
        written = str(part.get_payload()).encode("ascii", "replace")
        try:
            return b64decode(_BLANKS.sub(b"", written), validate=True)
        except binascii.Error:
            raise InvalidRequest("A part of the e-mail is said to be base64, and is not.", param="body") from None
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _as_utf8(part: EmailMessage, body: bytes) -> bytes:
    """Write a text in UTF-8, as it is declared; what is wrongly declared, or not, stays for its reader to find out."""
    encoding = resolve_encoding(part.get_content_charset())
    if encoding is None or encoding == "utf-8" or not is_encoded_as(body, encoding):
        return body
    return body if is_encoded_as(body, "utf-8") and not body.isascii() else body.decode(encoding).encode()


def _header(message: EmailMessage, name: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    if not raw or len(str(raw)) > MAX_HEADER_CHARACTERS:
        return ""
    value = message[name]
    if isinstance(value, DateHeader) and value.datetime is not None:
        return value.datetime.isoformat()
    written = str(raw).encode("utf-8", "surrogateescape")
    text = str(value) if written.isascii() else _bare_text(message, written)
    return " ".join(storable(text).split())


def _bare_text(message: EmailMessage, written: bytes) -> str:
    """Decode a header that is not written in ASCII, as it must be: as the text of the message is."""
    try:
        return decode(written, message.get_content_charset())[0]
    except InvalidRequest:
        return written.decode("utf-8", "replace")
