"""Office documents, which are archives of XML parts (ECMA-376): what is checked before a library opens one."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from backend.extraction.domain.blocks import Block
from backend.extraction.domain.media_types import FORMATS, ZIP, ZIP_START, office_format
from backend.extraction.formats.text import MALFORMED
from shared.errors import InvalidRequest, PayloadTooLarge

MAX_UNPACKED_BYTES = 200_000_000
MAX_PARTS = 20_000
"""A presentation of 5,000 slides has some 15,000 parts."""

_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
"""With this begin encrypted office documents, and those of Office before 2007 ([MS-CFB], 2.2)."""

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""The name of the stream in which an encrypted document lies ([MS-OFFCRYPTO], 2.3.4.4)."""

_PROLOG_BYTES = 64 * 1024
_DTD = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)

_MALFORMED = (*MALFORMED, BadZipFile, ArithmeticError, OSError, RuntimeError, SyntaxError, zlib.error)
"""A SyntaxError is malformed XML; zip raises the others."""


def read_archive(
    body: bytes, media_type: str, read: Callable[[BytesIO], Iterable[Block]], further: tuple[type[Exception], ...] = ()
) -> Iterator[Block]:
    """Yield what a library reads of an office document; `further` are the library's own exceptions.

    Raises:
        InvalidRequest: the file is encrypted, damaged, another kind of document, or holds a DTD.
        PayloadTooLarge: it would unpack to more than `MAX_UNPACKED_BYTES`, or has more than `MAX_PARTS` parts.
    """
    name = FORMATS[media_type].name
    try:
        _check(body, media_type)
        yield from read(BytesIO(body))
    except (*_MALFORMED, *further) as error:
        raise InvalidRequest(f"The {name} cannot be read; it may be damaged or encrypted.", param="body") from error


def _check(body: bytes, media_type: str) -> None:
    name = FORMATS[media_type].name
    if body.startswith(_COMPOUND_FILE):
        is_encrypted = _ENCRYPTED in body
        what = "is encrypted" if is_encrypted else f"has the format of Office before 2007: save the file as {name}"
        raise InvalidRequest(f"The {name} {what}.", param="body")
    if not body.startswith(ZIP_START):
        raise InvalidRequest(f"The file is no {name}.", param="body")
    found = office_format(body) if media_type != ZIP else None
    if found is not None and found != media_type:
        raise InvalidRequest(f"The file is no {name}, but a {FORMATS[found].name}.", param="body")
    with ZipFile(BytesIO(body)) as archive:
        parts = archive.infolist()
        _check_size(parts, name)
        for part in parts if media_type != ZIP else ():
            _check_prolog(archive, part, name)


def _check_size(parts: list[ZipInfo], name: str) -> None:
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        raise PayloadTooLarge(f"The {name} unpacks to more than {MAX_UNPACKED_BYTES} bytes.", param="body")
    if len(parts) > MAX_PARTS:
        raise PayloadTooLarge(f"The {name} has more than {MAX_PARTS} parts.", param="body")
    if any(part.flag_bits & 1 for part in parts):
        raise InvalidRequest(f"The {name} is encrypted.", param="body")


def _check_prolog(archive: ZipFile, part: ZipInfo, name: str) -> None:
    """Refuse XML with a DTD, which office documents never have: one entity declared in it can expand to gigabytes."""
    if not part.filename.lower().endswith((".xml", ".rels", ".vml")):
        return
    with archive.open(part) as opened:
        start = opened.read(_PROLOG_BYTES)
    if _DTD.search(start.replace(b"\x00", b"")):
        raise InvalidRequest(f"The {name} holds a DTD in {part.filename[:100]!r}.", param="body")
