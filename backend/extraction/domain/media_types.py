"""The format of a document, as a media type."""

import codecs
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from shared.errors import UnsupportedValue

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CSV = "text/csv"
JSON = "application/json"
JSON_LINES = "application/jsonl"
EMAIL = "message/rfc822"
OUTLOOK = "application/vnd.ms-outlook"
RTF = "application/rtf"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
EPUB = "application/epub+zip"
ZIP = "application/zip"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"


class Format(NamedTuple):
    """A readable format, by what clients call it and what reading it takes.

    `reader` names the module among the readers, and its function. Formats that are heavy take long for their length:
    what they hold is packed, or a page is drawn to be read. Those that are `is_text` may have any encoding of texts;
    those that are `is_picture` have no text but what an engine for pictures finds.
    Files in UTF-8 of up to `bytes_read_here` are read without a child process: none of these lengths takes 50 ms,
    whatever the file holds. `version` grows when the reader, or one that it hands parts to, makes another text of the
    same bytes: documents that an earlier one has read can then be read again.
    """

    name: str
    reader: str
    endings: tuple[str, ...]
    other_types: tuple[str, ...] = ()
    is_heavy: bool = False
    is_text: bool = False
    is_picture: bool = False
    bytes_read_here: int = 0
    version: int = 1


FORMATS: Final[Mapping[str, Format]] = {
    TEXT: Format("text", "text:read_plain_text", ("txt", "text", "log"), is_text=True, bytes_read_here=64 * 1024),
    MARKDOWN: Format(
        "Markdown",
        "markdown:read_markdown",
        ("md", "markdown"),
        ("text/x-markdown",),
        is_text=True,
        bytes_read_here=8 * 1024,
        version=2,
    ),
    HTML: Format(
        "HTML", "html:read_html", ("htm", "html", "xhtml"), ("application/xhtml+xml",), is_text=True, version=2
    ),
    PDF: Format("PDF", "pdf.document:read_pdf", ("pdf",), is_heavy=True, version=3),
    DOCX: Format("DOCX", "docx.document:read_docx", ("docx",), is_heavy=True, version=3),
    PPTX: Format("PPTX", "pptx:read_pptx", ("pptx",), is_heavy=True, version=3),
    XLSX: Format("XLSX", "xlsx:read_xlsx", ("xlsx",), is_heavy=True, version=3),
    CSV: Format(
        "CSV",
        "delimited:read_csv",
        ("csv", "tsv"),
        ("application/csv", "text/x-csv", "text/tab-separated-values"),
        is_text=True,
        version=2,
    ),
    JSON: Format("JSON", "json_values:read_json_document", ("json",), ("text/json",), is_text=True),
    JSON_LINES: Format(
        "JSON lines",
        "json_values:read_json_lines",
        ("jsonl", "ndjson"),
        ("application/x-ndjson", "application/ndjson", "application/x-jsonlines", "application/json-lines"),
        is_text=True,
    ),
    EMAIL: Format("e-mail (EML)", "chosen:read_email", ("eml",), is_heavy=True, version=2),
    OUTLOOK: Format("Outlook message (MSG)", "chosen:read_outlook", ("msg",), is_heavy=True),
    RTF: Format("RTF", "rtf:read_rtf", ("rtf",), ("text/rtf", "application/x-rtf", "text/richtext"), version=2),
    ODT: Format("ODT", "open_document:read_document", ("odt",), is_heavy=True, version=2),
    ODS: Format("ODS", "open_document:read_sheets", ("ods",), is_heavy=True, version=2),
    ODP: Format("ODP", "open_document:read_slides", ("odp",), is_heavy=True, version=2),
    EPUB: Format("EPUB", "epub:read_epub", ("epub",), is_heavy=True, version=2),
    ZIP: Format("ZIP", "chosen:read_zip", ("zip",), is_heavy=True, version=2),
    PNG: Format("PNG", "pictures.files:read_picture", ("png",), is_heavy=True, is_picture=True),
    JPEG: Format(
        "JPEG", "pictures.files:read_picture", ("jpg", "jpeg"), ("image/jpg",), is_heavy=True, is_picture=True
    ),
    TIFF: Format("TIFF", "pictures.files:read_picture", ("tif", "tiff"), is_heavy=True, is_picture=True),
    WEBP: Format("WebP", "pictures.files:read_picture", ("webp",), is_heavy=True, is_picture=True),
}
"""The readable formats, by media type."""

READER_VERSIONS: Final[Mapping[str, int]] = {media_type: one.version for media_type, one in FORMATS.items()}
"""The version of the reader of each format."""

READABLE = tuple(FORMATS)
*_FIRST_NAMES, _LAST_NAME = (one.name for one in FORMATS.values() if not one.is_picture)
READABLE_NAMES = f"{', '.join(_FIRST_NAMES)} or {_LAST_NAME}"

_BY_HEADER = {name: media_type for media_type, one in FORMATS.items() for name in (media_type, *one.other_types)}
_BY_ENDING = {ending: media_type for media_type, one in FORMATS.items() for ending in one.endings}
_UNSPECIFIC = (
    *("", "application/octet-stream", "application/x-www-form-urlencoded", "binary/octet-stream"),
    *("application/zip", "application/x-zip-compressed", "application/vnd.ms-excel"),
)
"""Types that do not name the format: those that clients send by default, as curl does for `--data-binary`; that of the
archives which office documents are; and that under which browsers on Windows send CSV files."""

_OLD_OFFICE = {"doc": "DOCX", "ppt": "PPTX", "xls": "XLSX"}
"""Endings of the binary formats before 2007, and what the same programs save today."""

MAIN_PARTS: Final = {DOCX: b"word/document.xml", PPTX: b"ppt/presentation.xml", XLSX: b"xl/workbook.xml"}
"""The part by whose usual name an office document is known among others (ECMA-376, part 1)."""

ZIP_START = b"PK\x03\x04"
_NAMED_TYPE = re.compile(rb"PK\x03\x04.{22}\x08\x00..mimetype.{0,64}?(application/[a-z+.]+)", re.DOTALL)
"""The first part of OpenDocument files and of EPUB is not packed, and says their media type."""
_ARCHIVE_END_BYTES = 2**18
"""The list of an archive's parts stands at its end; of an ordinary document it is far shorter."""

_START_BYTES = 1024
_TEXT_START_BYTES = 64 * 1024
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_BINARY_SHARE = 0.001
_NEVER_TEXT = ("image", "audio", "video", "font", "model")
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_MAIL = re.compile(rb"(?:Return-Path|Received|Delivered-To|From|MIME-Version|Message-ID): ?\S", re.IGNORECASE)


def media_type_of(header: str | None, name: str, body: bytes | bytearray = b"") -> str:
    """Return one of `READABLE`: by the Content-Type header, else by the ending of the name, else by the first bytes.

    What none of them names is text where its bytes are: code, YAML, a log, a file without an ending.

    Raises:
        UnsupportedValue: none of them names a readable format.
    """
    media_type = (header or "").partition(";")[0].strip().lower()
    if media_type in _UNSPECIFIC:
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        _refuse_old_office(ending)
        media_type = _BY_ENDING.get(ending) or _by_first_bytes(body)
    if media_type not in _BY_HEADER:
        if media_type.partition("/")[0] not in _NEVER_TEXT and _is_text(body):
            return TEXT
        what = f"'{media_type}'" if media_type else f"the type of '{name}'"
        raise UnsupportedValue(f"Cannot read {what}: documents are {READABLE_NAMES}.", param="Content-Type")
    return _BY_HEADER[media_type]


def _is_text(body: bytes | bytearray) -> bool:
    """Say whether a file begins like a text, in whatever encoding: with hardly any signs that none has in it."""
    start = bytes(body[:_TEXT_START_BYTES])
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return bool(start) and len(_BINARY.findall(start)) <= _MAX_BINARY_SHARE * len(start)


def charset_of(header: str | None) -> str | None:
    """Return the encoding that a Content-Type header tells, as this process names it.

    Raises:
        UnsupportedValue: there is no encoding of that name.
    """
    pairs = (parameter.partition("=") for parameter in (header or "").split(";")[1:])
    named = next((value.strip(" \"'") for key, _, value in pairs if key.strip().lower() == "charset"), "")
    if named.lower() in ("", "ascii", "us-ascii"):
        return None
    try:
        return codecs.lookup(named).name
    except LookupError:
        raise UnsupportedValue(f"There is no encoding named '{named[:100]}'.", param="Content-Type") from None


def _refuse_old_office(ending: str) -> None:
    if ending in _OLD_OFFICE:
        successor = _OLD_OFFICE[ending]
        message = f"The format of '.{ending}' files is that of Office before 2007: save the file as {successor}."
        raise UnsupportedValue(message, param="Content-Type")


def _by_first_bytes(body: bytes | bytearray) -> str:
    start = bytes(body[:_START_BYTES])
    if start.startswith(b"%PDF-"):
        return PDF
    if start.startswith(ZIP_START):
        return office_format(body) or ZIP
    if start.startswith(b"{\\rtf"):
        return RTF
    if _PAGE.match(start):
        return HTML
    return EMAIL if _MAIL.match(start) else ""


def office_format(archive: bytes | bytearray) -> str | None:
    """Return which office document an archive is, by the names of its parts; None where it is none of them."""
    named = _NAMED_TYPE.match(bytes(archive[:_START_BYTES]))
    if named and (media_type := named[1].decode()) in FORMATS:
        return media_type
    listed = bytes(archive[-_ARCHIVE_END_BYTES:])
    return next((media_type for media_type, part in MAIN_PARTS.items() if part in listed), None)
