"""Other texts that a text may hide: what it reads as once a simple encoding is undone."""

import base64
import binascii
import re
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.leaks.oracle.reading import visible

AS_IT_STANDS = "as it stands"
_LONG_TOKEN = 8
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_BASE32 = re.compile(r"[A-Za-z2-7]{8,}={0,6}")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]?){2,}")
_NUMBER = re.compile(r"[\d\s:,]+")
"""Outside of prose a long number is one: counts and times are full of digits that read as others in hexadecimal."""

_EXPONENT = re.compile(r"\b\d\.\d+e[+-]\d+\b")
"""Its letter makes hexadecimal text of the digits before it."""

_CODES = re.compile(r"(?:\b\d{2,3}\b[\s,;]+){2,}\d{2,3}\b")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\([nrt\"/])|\\\\")
_ENTITY = re.compile(r"&#(x?[0-9a-fA-F]+);|%([0-9a-fA-F]{2})")
_PADDED_BYTES = 8
_LEAST_READABLE = 0.9
_LEET = (
    str.maketrans("0134578@$!+", "oieastbasit"),
    str.maketrans("0134578@$|+", "oleastbaslt"),
    str.maketrans("01345679@$!+", "oleasgtgasit"),
)
_LETTERS = string.ascii_lowercase
_SHIFTS = [str.maketrans(_LETTERS, _LETTERS[shift:] + _LETTERS[:shift]) for shift in range(1, 26)]
_ROT13 = _SHIFTS[12]
_ATBASH = str.maketrans(_LETTERS, _LETTERS[::-1])


class Decoded(NamedTuple):
    """A text and how it was got from the one that stands there."""

    via: str
    text: str


def unescaped(text: str) -> str:
    """Undo escapes of JSON, so that a line feed or an ideograph written as one is itself again."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def decoded(text: str, *, is_prose: bool) -> Iterator[Decoded]:
    """Yield the text itself and all that it may hide; in prose, short tokens and every letter shift too."""
    plain = unescaped(text)
    yield Decoded(AS_IT_STANDS, plain)
    seen = visible(plain)
    yield from _from_tokens(seen, 4 if is_prose else _LONG_TOKEN)
    yield Decoded("reversed", seen[::-1])
    lower = seen.lower()
    if is_prose:
        yield Decoded("words reversed", " ".join(word[::-1] for word in seen.split()))
        yield Decoded("entities", _ENTITY.sub(_entity, seen))
        for table in _LEET:
            yield Decoded("leet", lower.translate(table))
        for shift, table in enumerate(_SHIFTS, 1):
            yield Decoded(f"shifted by {shift}", lower.translate(table))
        yield Decoded("mirrored alphabet", lower.translate(_ATBASH))
    else:
        yield Decoded("shifted by 13", lower.translate(_ROT13))


def _from_tokens(text: str, shortest: int) -> Iterator[Decoded]:
    scanned = _EXPONENT.sub(" ", text) if shortest == _LONG_TOKEN else text
    for via, pattern, read in _TOKENS:
        for found in pattern.finditer(scanned):
            if len(found[0]) >= shortest and not (shortest == _LONG_TOKEN and _NUMBER.fullmatch(found[0])):
                for content in read(found[0]):
                    yield Decoded(via, content)


def _base64(token: str) -> Iterator[str]:
    bare = token.rstrip("=").translate(str.maketrans("-_", "+/"))
    for start in range(min(4, len(bare) - 3)) if len(bare) > _LONG_TOKEN else (0,):
        piece = bare[start:]
        piece = piece[: len(piece) - 1] if len(piece) % 4 == 1 else piece
        yield from _text_of(lambda piece=piece: base64.b64decode(piece + "=" * (-len(piece) % 4)))
        if not _has_digit_or_both_cases(bare):
            return


def _base32(token: str) -> Iterator[str]:
    bare = token.rstrip("=").upper()
    yield from _text_of(lambda: base64.b32decode(bare + "=" * (-len(bare) % _PADDED_BYTES)))


def _hex(token: str) -> Iterator[str]:
    digits = re.sub(r"0x|\\x|[\s:,]", "", token)
    yield from _text_of(lambda: bytes.fromhex(digits))


def _codes(token: str) -> Iterator[str]:
    yield from _text_of(lambda: bytes(int(code) for code in re.findall(r"\d+", token)))


_TOKENS: tuple[tuple[str, re.Pattern[str], Callable[[str], Iterator[str]]], ...] = (
    ("base64", _BASE64, _base64),
    ("base32", _BASE32, _base32),
    ("hex", _HEX, _hex),
    ("character codes", _CODES, _codes),
)


def _text_of(read: Callable[[], bytes]) -> Iterator[str]:
    try:
        content = read()
    except (binascii.Error, ValueError):
        return
    text = content.decode("utf-8", errors="ignore")
    if text and len(text.encode()) >= _LEAST_READABLE * len(content) and _is_readable(text):
        yield text


def _is_readable(text: str) -> bool:
    return text.isprintable() or sum(map(str.isprintable, text)) >= _LEAST_READABLE * len(text)


def _has_digit_or_both_cases(token: str) -> bool:
    return any(character.isdigit() for character in token) or not (token.islower() or token[1:].islower())


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return " " if found[2] in ("n", "r", "t") else found[2] or "\\"


def _entity(found: re.Match[str]) -> str:
    code = int(found[2], 16) if found[2] else int(found[1].lstrip("x"), 16 if found[1].startswith("x") else 10)
    return chr(code) if code <= 0x10FFFF else " "
