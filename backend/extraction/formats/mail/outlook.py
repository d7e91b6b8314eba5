"""Messages that Outlook has saved ([MS-OXMSG]), as the e-mail that each of them is; its reader does the rest."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from email.policy import default
from io import BytesIO
from struct import iter_unpack, unpack_from
from typing import Any, NamedTuple

from olefile import OleFileIO

from backend.extraction.formats.encodings import resolve_encoding
from backend.extraction.formats.text import MALFORMED, decode, storable
from shared.errors import InvalidRequest, PayloadTooLarge

_CLASS, _SUBJECT, _BODY, _RTF, _HTML = 0x001A, 0x0037, 0x1000, 0x1009, 0x1013
_SENT, _DELIVERED, _CODE_PAGE, _HTML_CODE_PAGE = 0x0039, 0x0E06, 0x3FFD, 0x3FDE
_SENDER_NAME, _SENDER_ADDRESSES = 0x0C1A, (0x5D01, 0x0C1F)
_NAME, _ADDRESSES, _RECIPIENT_KIND = 0x3001, (0x39FE, 0x3003), 0x0C15
_ATTACHED, _FILE_NAMES, _FILE_TYPE = 0x3701, (0x3707, 0x3704, 0x3001), 0x370E
_RECIPIENTS = {1: "To", 2: "Cc"}
_MAIL_CLASS = "IPM.NOTE"
"""Properties by their numbers, and their values ([MS-OXPROPS])."""

_WIDE, _NARROW, _BINARY, _OBJECT = "001F", "001E", "0102", "000D"
_FIXED = "__properties_version1.0"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MAX_DEPTH = 30
_MAX_RTF_BYTES = 50_000_000
_RTF_START = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""What packed RTF may refer to before it has said anything ([MS-OXRTFCP], 2.1.2.1)."""
_RTF_WINDOW = 4096
_UNPACKED = b"MELA"


_POLICY = default.clone(header_factory=HeaderRegistry(use_default_map=False))
"""Its names of people are no addresses of RFC 5322, which would be parsed as such."""

_OTHER_FIELDS = "Of this Outlook item ({}) only what e-mails have was read: its other fields were not."
_UNCERTAIN = "The encoding of some texts of the message is not told: they were read as Windows-1252."


class OutlookItem(NamedTuple):
    """A message, and what of its file it does not hold."""

    message: EmailMessage
    notes: tuple[str, ...]


def read_saved_message(body: bytes) -> OutlookItem:
    """Read a file; an appointment or a contact has the fields of an e-mail, and further ones.

    Raises:
        InvalidRequest: it is no message of Outlook, or damaged.
        PayloadTooLarge: its text is too large unpacked.
    """
    try:
        library: Any = OleFileIO
        with library(BytesIO(body)) as file:
            notes = dict[str, None]()
            item = _Storage(file, (), 32, notes)
            kind = item.text(_CLASS)
            if not kind.upper().startswith(_MAIL_CLASS):
                notes[_OTHER_FIELDS.format(kind[:100])] = None
            return OutlookItem(_message(item, 1), tuple(notes))
    except (*MALFORMED, OSError) as error:
        raise InvalidRequest("The file is no message of Outlook, or damaged.", param="body") from error


class _Storage:
    """The properties of a message, of one of its recipients or of an attachment; some lie in one table."""

    def __init__(self, file: Any, path: tuple[str, ...], head_bytes: int, notes: dict[str, None]) -> None:
        self.file, self.path, self.notes = file, path, notes
        table = self._stream(_FIXED)[head_bytes:]
        entries = iter_unpack("<HHI8s", table[: len(table) // 16 * 16])
        self._fixed = {number: value for _, number, _, value in entries}
        code_page = self.number(_CODE_PAGE) or self.number(_HTML_CODE_PAGE)
        self.charset = f"cp{code_page}" if code_page else None

    def text(self, *numbers: int) -> str:
        """Return the first of these texts that is there."""
        for number in numbers:
            if wide := self._property(number, _WIDE):
                return storable(wide.decode("utf-16-le", "replace")).rstrip("\0")
            if narrow := self._property(number, _NARROW):
                return storable(self._decode(narrow.rstrip(b"\0")))
        return ""

    def _decode(self, narrow: bytes) -> str:
        try:
            text, notes = decode(narrow, self.charset)
            self.notes |= dict.fromkeys(note.text for note in notes)
            return text
        except InvalidRequest:
            self.notes[_UNCERTAIN] = None
            return narrow.decode("cp1252", "replace")

    def binary(self, number: int) -> bytes:
        return self._property(number, _BINARY)

    def number(self, number: int) -> int:
        return int.from_bytes(self._fixed.get(number, b"")[:4], "little")

    def moment(self, *numbers: int) -> datetime | None:
        """Return the first of these moments that is there; they count 0.1 µs."""
        ticks = next((unpack_from("<Q", self._fixed[number])[0] for number in numbers if number in self._fixed), 0)
        return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None

    def inner(self, kind: str) -> Iterator["_Storage"]:
        """Yield the recipients or attachments."""
        depth = len(self.path)
        listed = self.file.listdir(streams=False, storages=True)
        for path in sorted(tuple(each) for each in listed if tuple(each[:depth]) == self.path):
            if len(path) == depth + 1 and path[-1].startswith(kind):
                yield self._below(path, 8)

    def find_attached(self) -> "_Storage | None":
        path = (*self.path, f"__substg1.0_{_ATTACHED:04X}{_OBJECT}")
        is_message = self.file.exists("/".join((*path, _FIXED)))
        return self._below(path, 24) if is_message else None

    def _below(self, path: tuple[str, ...], head_bytes: int) -> "_Storage":
        storage = _Storage(self.file, path, head_bytes, self.notes)
        storage.charset = storage.charset or self.charset
        return storage

    def _property(self, number: int, kind: str) -> bytes:
        return self._stream(f"__substg1.0_{number:04X}{kind}")

    def _stream(self, name: str) -> bytes:
        path = [*self.path, name]
        return self.file.openstream(path).read() if self.file.exists("/".join(path)) else b""


def _message(item: _Storage, depth: int) -> EmailMessage:
    message = EmailMessage(policy=_POLICY)
    message["Subject"] = _line(item.text(_SUBJECT))
    message["From"] = _person(item, _SENDER_NAME, _SENDER_ADDRESSES)
    for kind, header in _RECIPIENTS.items():
        found = (each for each in item.inner("__recip_version1.0_") if each.number(_RECIPIENT_KIND) == kind)
        if people := ", ".join(_person(each, _NAME, _ADDRESSES) for each in found):
            message[header] = people
    if (sent := item.moment(_SENT, _DELIVERED)) is not None:
        message["Date"] = sent.isoformat()
    _put_text(message, item)
    for attached in item.inner("__attach_version1.0_"):
        _attach(message, attached, depth)
    return message


def _put_text(message: EmailMessage, item: _Storage) -> None:
    """Put the plain text, else the HTML, else the RTF, as the others say the same."""
    if plain := item.text(_BODY).strip():
        message.set_content(plain, charset="utf-8")
    elif html := item.binary(_HTML) or item.text(_HTML).encode():
        encoding = resolve_encoding(f"cp{item.number(_HTML_CODE_PAGE)}") if item.binary(_HTML) else "utf-8"
        message.set_content(html, "text", "html", params={"charset": encoding} if encoding else None)
    elif packed := item.binary(_RTF):
        message.set_content(_unpack_rtf(packed), "application", "rtf", disposition="inline")


def _attach(message: EmailMessage, attached: _Storage, depth: int) -> None:
    name, inner = _line(attached.text(*_FILE_NAMES)), attached.find_attached()
    if inner is not None and depth < _MAX_DEPTH:
        message.add_attachment(_message(inner, depth + 1))
        return
    main, _, sub = (attached.text(_FILE_TYPE) or "application/octet-stream").partition("/")
    message.add_attachment(attached.binary(_ATTACHED), main, sub or "octet-stream", filename=name or "unnamed")


def _person(item: _Storage, name: int, addresses: tuple[int, ...]) -> str:
    """Write a name and an address, which inside an organisation may be no e-mail address."""
    shown, address = _line(item.text(name)), _line(item.text(*addresses))
    return f"{shown} <{address}>" if "@" in address and address != shown else shown or address


def _line(text: str) -> str:
    return " ".join(text.split())


def _unpack_rtf(packed: bytes) -> bytes:
    """Unpack the RTF of a message ([MS-OXRTFCP], 2.2): runs of eight bytes or references to what came before.

    Raises:
        PayloadTooLarge: it is larger than any message's.
    """
    size: int = unpack_from("<I", packed, 4)[0]
    if size > _MAX_RTF_BYTES:
        raise PayloadTooLarge(f"The message's RTF unpacks to more than {_MAX_RTF_BYTES} bytes.", param="body")
    if packed[8:12] == _UNPACKED:
        return packed[16 : 16 + size]
    text, at = bytearray(_RTF_START), 16
    while at < len(packed) and len(text) < size + len(_RTF_START):
        flags, at = packed[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += packed[at : at + 1]
                at += 1
                continue
            reference, at = int.from_bytes(packed[at : at + 2], "big"), at + 2
            back = (len(text) - (reference >> 4)) % _RTF_WINDOW
            if not back:
                return bytes(text[len(_RTF_START) :])
            for _ in range((reference & 15) + 2):
                text.append(text[-back])
    return bytes(text[len(_RTF_START) :])
