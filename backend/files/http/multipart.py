"""Reading an upload, a form of the kind multipart/form-data (RFC 7578), as it arrives."""

import asyncio
from typing import NamedTuple

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from shared.errors import InvalidRequest

MAX_PARTS = 16
MAX_FIELD_BYTES = 1024
SLICE_BYTES = 16_384
"""Parsed at a time; even bytes that look like the boundary again and again take a few milliseconds for it."""

FILE = "file"
FIELDS = ("purpose",)


class Upload(NamedTuple):
    """The parts of a form: a file with its name and type, and fields."""

    filename: str
    content_type: str | None
    body: bytearray
    fields: dict[str, str]


class _Part:
    """A part of the form, whose headers come first."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.header_name = bytearray()
        self.header_value = bytearray()
        self.body = bytearray()
        self.name = ""
        self.filename: str | None = None

    def end_header(self) -> None:
        self.headers[bytes(self.header_name).strip().lower()] = bytes(self.header_value).strip()
        self.header_name, self.header_value = bytearray(), bytearray()

    def end_headers(self) -> None:
        kind, options = parse_options_header(self.headers.get(b"content-disposition"))
        if kind != b"form-data" or b"name" not in options:
            raise InvalidRequest("Each part of the form needs a header Content-Disposition with its name.")
        self.name = _decode(options[b"name"], "name of a part")
        self.filename = _decode(options[b"filename"], "name of the file") if b"filename" in options else None

    def content_type(self) -> str | None:
        named = self.headers.get(b"content-type")
        return _decode(named, "type of the file")[:MAX_FIELD_BYTES] if named else None


class _Form:
    """Collects the parts that a parser finds, and refuses those that an upload does not have."""

    def __init__(self) -> None:
        self.parts: dict[str, _Part] = {}
        self.is_whole = False
        self._count = 0
        self._part = _Part()

    def on_part_begin(self) -> None:
        self._count += 1
        if self._count > MAX_PARTS:
            raise InvalidRequest(f"The form has more than {MAX_PARTS} parts.")
        self._part = _Part()

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.header_value += data[start:end]

    def on_header_end(self) -> None:
        self._part.end_header()

    def on_headers_finished(self) -> None:
        part = self._part
        part.end_headers()
        _check_name(part.name)
        if part.name in self.parts:
            raise InvalidRequest(f"The form has more than one part '{part.name}'.", param=part.name)
        self.parts[part.name] = part

    def on_part_bytes(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        part.body += memoryview(data)[start:end]
        if part.name != FILE and len(part.body) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"The field '{part.name}' is too long.", param=part.name)

    def on_end(self) -> None:
        self.is_whole = True


async def read_upload(request: Request) -> Upload:
    """Read a form as it arrives; the file is held once in memory.

    Raises:
        InvalidRequest: the body is no such form, ends too early, lacks the file, or has a part that is not known.
    """
    form = _Form()
    parser = _parser_for(request, form)
    try:
        async for piece in request.stream():
            for start in range(0, len(piece), SLICE_BYTES):
                parser.write(piece[start : start + SLICE_BYTES])
                await asyncio.sleep(0)
        parser.finalize()
    except FormParserError:
        raise InvalidRequest("The body is not a well-formed multipart form.", param=FILE) from None
    if not form.is_whole:
        raise InvalidRequest("The body ends in the middle of the form: its last boundary is missing.", param=FILE)
    return _upload_of(form)


def _parser_for(request: Request, form: _Form) -> MultipartParser:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise InvalidRequest(
            "The body must be a form of the kind multipart/form-data with the parts 'purpose' and 'file'.", param=FILE
        )
    try:
        return MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": form.on_part_begin,
                "on_header_field": form.on_header_field,
                "on_header_value": form.on_header_value,
                "on_header_end": form.on_header_end,
                "on_headers_finished": form.on_headers_finished,
                "on_part_data": form.on_part_bytes,
                "on_end": form.on_end,
            },
        )
    except FormParserError:
        raise InvalidRequest("The boundary of the multipart form is too long.", param=FILE) from None


def _upload_of(form: _Form) -> Upload:
    file = form.parts.pop(FILE, None)
    if file is None:
        raise InvalidRequest("The form lacks the part 'file'.", param=FILE)
    if file.filename is None:
        raise InvalidRequest("The part 'file' needs a file name in its header Content-Disposition.", param=FILE)
    fields = {name: _decode(bytes(part.body), f"field '{name}'") for name, part in form.parts.items()}
    return Upload(file.filename, file.content_type(), file.body, fields)


def _check_name(name: str) -> None:
    if name.partition("[")[0] == "expires_after":
        raise InvalidRequest("Files do not expire: leave 'expires_after' out.", param="expires_after")
    if name != FILE and name not in FIELDS:
        shown = name if name.isprintable() and len(name) <= 64 else "with this name"
        raise InvalidRequest(f"The form has an unknown part {shown!r}; send 'purpose' and 'file'.", param=shown)


def _decode(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"The {what} must be encoded as UTF-8.", param=FILE) from None
