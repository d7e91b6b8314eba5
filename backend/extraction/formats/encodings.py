"""The encoding of a text: as its bytes mark it, else UTF-8, else as it is declared, else as its letters are likeliest.

Nothing is guessed in silence: a note says what was taken, and where two encodings are as likely, the text is refused.
What guesses is loaded with the first text that needs it.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import NamedTuple

from backend.extraction.domain.blocks import Note

_MARKS: Mapping[bytes, str] = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LARGER: Mapping[str, str] = {
    **dict.fromkeys(("gb2312", "gbk", "hz-gb-2312"), "gb18030"),
    **dict.fromkeys(("iso8859-1", "ascii"), "cp1252"),
    **dict.fromkeys(("euc_kr", "johab", "ks_c_5601-1987"), "cp949"),
    "shift_jis": "cp932",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "big5": "big5hkscs",
}
"""Encodings that hold those that are written for them: what is declared as the smaller one is often the larger one."""

SAMPLE_BYTES = 1024 * 1024
_UTF16_SAMPLE_BYTES = 4096
_NUL_SHARE_OF_UTF16 = 0.3
_SHIFTED = re.compile(rb"\x1b[$(]|~\{")
"""With these begin the letters of encodings of seven bits, such as ISO-2022-JP: their bytes are ASCII."""

_CONTROLS = re.compile("[\x80-\x84\x86-\x9f]")
"""Signs that no text has in it; those of ASCII, which every encoding reads the same, tell nothing here."""

_WITHOUT_MEANING = re.compile("[\ue000-\uf8ff\ufffe\uffff]")
_MAX_SHARE_WITHOUT_MEANING = 0.001


class Encoding(NamedTuple):
    """The name of an encoding, and whether it was guessed."""

    name: str
    is_guess: bool = False

    def notes(self) -> Iterator[Note]:
        """Say what was guessed."""
        if self.is_guess:
            yield Note(text=f"The encoding is not declared: the text was read as {self.name.upper()}.")


def find_encoding(body: bytes, declared: str | None = None) -> Encoding:
    """Return the encoding of a text.

    Raises:
        InvalidRequest: it is none that fits, or more than one is likely; the message names the likeliest.
    """
    marked = next((name for mark, name in _MARKS.items() if body.startswith(mark)), None)
    if marked is not None:
        return Encoding(marked)
    known = resolve_encoding(declared)
    if known is not None and _SHIFTED.search(body) and body.isascii() and is_encoded_as(body, known):
        return Encoding(known)
    if (utf16 := _find_utf16(body[:_UTF16_SAMPLE_BYTES])) and is_encoded_as(body, utf16):
        return Encoding(utf16)
    if is_encoded_as(body, "utf-8"):
        return Encoding("utf-8")
    if known is not None and has_sense(body, known):
        return Encoding(known)
    return Encoding(resolve_name(f"{__package__}.guessing:guess_encoding")(body), is_guess=True)


def resolve_encoding(name: str | None) -> str | None:
    """Return the encoding that programs mean by a name; None where there is none of that name."""
    try:
        found = codecs.lookup((name or "").strip(" \"'")).name
    except LookupError:
        return None
    return _LARGER.get(found, found)


def is_encoded_as(body: bytes, encoding: str) -> bool:
    """Say whether all bytes have a meaning in an encoding, without holding what they mean."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for start in range(0, len(body), SAMPLE_BYTES):
            decoder.decode(body[start : start + SAMPLE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _find_utf16(start: bytes) -> str | None:
    """Tell UTF-16 by the NULs that every character of ASCII has in it, at even places or at odd ones."""
    nuls = [start[first::2].count(0) / max(1, len(start) // 2) for first in (0, 1)]
    if max(nuls) < _NUL_SHARE_OF_UTF16 or min(nuls) > 0:
        return None
    return "utf-16-be" if nuls[0] else "utf-16-le"


def has_sense(body: bytes, encoding: str) -> bool:
    """Say whether an encoding makes a text of bytes: signs that are no text are as good as none in it."""
    if not is_encoded_as(body, encoding):
        return False
    sample = body[:SAMPLE_BYTES].decode(encoding, "ignore")
    unknown = len(_WITHOUT_MEANING.findall(sample))
    return not _CONTROLS.search(sample) and unknown <= _MAX_SHARE_WITHOUT_MEANING * len(sample)
