"""The canonical form of a text: what is judged is what is released, byte for byte.

The form is built from the words alone. Letters are ASCII or simplified Chinese, except in words that the user wrote;
capitals, blanks and marks are placed by code. So the look of letters, blanks, capitals and signs carry nothing.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import chain, groupby

from shared.disclosure.english import one_spelling, parts_of_word
from shared.disclosure.word_lists import load_simplified
from shared.plain_text.normal_form import is_invisible

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff"
_HYPHENATED = "(?i:co|re|pre|non|multi|semi|anti|ex|mid|post|sub|inter|self|cross|e)"
"""Beginnings that are no words by themselves: they stay joined to what they begin."""

_TOKEN = re.compile(
    rf"(?P<han>[{HAN}]+)|(?P<number>\d+(?:[.,:/]\d+)+)|(?P<word>(?:(?:{_HYPHENATED})-)?(?:(?![{HAN}])[^\W_])+(?:'(?:(?![{HAN}])[^\W_])+)*)"
    r"|(?P<stop>[.!?。\n])|(?<=[^\W_])-(?=[^\W_])|(?P<pause>[^\s])"
)
_APOSTROPHES = re.compile("(?<=[^\\W\\d_])[’‘ʼ＇`´](?=[^\\W\\d_])")
_HYPHENS = re.compile("(?<=[^\\W_])[-\u2010-\u2015\u2212](?=[^\\W_])")
_QUOTES = frozenset("\"'“”‘’「」『』《》·")
_READABLE = _QUOTES.union(",.;:?!()-/&，。；：？！（）、—–‐‑…")
"""The marks that a reply may hold; each becomes a full stop, a comma, or nothing."""


class Kind(Enum):
    """What a piece of a text is."""

    WORD = auto()
    HAN = auto()
    STOP = auto()
    PAUSE = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """A word of a spaced script or a number, a stretch of Chinese characters, a full stop, or a comma."""

    kind: Kind
    text: str


SENTENCES, CLAUSES = frozenset((Kind.STOP,)), frozenset((Kind.STOP, Kind.PAUSE))
"""The marks that end a sentence, and those that end a clause."""


def pieces(text: str) -> tuple[Piece, ...]:
    """Return the words of a text with its stops and pauses, in lower case and simplified Chinese."""
    return tuple(_with_whole_runs(_without_idle_marks(_pieces(plain(text)))))


def parts_of(of: Iterable[Piece], ends: Collection[Kind]) -> Iterator[list[Piece]]:
    """Yield the words of each part of a text up to one of these marks, without marks; a part has words."""
    for is_end, row in groupby(of, key=lambda piece: piece.kind in ends):
        if not is_end and (part := [piece for piece in row if piece.kind not in CLAUSES]):
            yield part


def sentences_of(fields: Iterable[Iterable[Piece]]) -> Iterator[list[Piece]]:
    """Yield the words of each sentence of several texts."""
    return chain.from_iterable(parts_of(field, SENTENCES) for field in fields)


def words_in(of: Iterable[Piece]) -> frozenset[str]:
    """Return the words of spaced scripts; of one with a hyphen also what the hyphen joins a beginning to."""
    return frozenset(chain.from_iterable(parts_of_word(piece.text) for piece in of if piece.kind is Kind.WORD))


def han_in(of: Iterable[Piece]) -> list[str]:
    """Return the stretches of Chinese characters."""
    return [piece.text for piece in of if piece.kind is Kind.HAN]


@lru_cache(maxsize=256)
def plain(text: str) -> str:
    """Return a text in NFKC, without accents, invisible characters and the ambiguity of apostrophes and hyphens."""
    if not text.isascii():
        shown = "".join(character for character in text if not is_invisible(character) or character in "\n\t")
        composed = unicodedata.normalize("NFKC", shown)
        text = "".join(map(_bare, composed)).translate(load_simplified())
    return _HYPHENS.sub("-", _APOSTROPHES.sub("'", text))


def unreadable(text: str) -> frozenset[str]:
    """Return the characters of a text that are no letters, digits, blanks or marks of a sentence."""
    signs = {character for character in unicodedata.normalize("NFKC", text) if not character.isalnum()}
    return frozenset(sign for sign in signs if not sign.isspace() and sign not in _READABLE and not is_invisible(sign))


def compose(of: Iterable[Piece], spellings: Mapping[str, str]) -> str:
    """Write pieces as one text, which ends in a full stop; `spellings` are the user's of words with inner capitals.

    Marks are Chinese in a text with any Chinese character, and English in every other.
    """
    found = tuple(of)
    is_chinese = any(piece.kind is Kind.HAN for piece in found)
    stop, pause = ("。", "，") if is_chinese else (".", ",")
    text, begins = "", True
    for piece in found:
        if piece.kind in CLAUSES:
            text += stop if piece.kind is Kind.STOP else pause
            begins = piece.kind is Kind.STOP
            continue
        is_apart = piece.kind is Kind.WORD and _takes_blank(text[-1:], is_chinese)
        text += " " * is_apart + _spell(piece, spellings, begins)
        begins = False
    return text + stop if text and not text.endswith(stop) else text


def _pieces(text: str) -> Iterator[Piece]:
    for match in _TOKEN.finditer(text):
        found = match[0]
        if match.lastgroup == "han":
            yield Piece(Kind.HAN, found)
        elif match.lastgroup in ("word", "number"):
            yield Piece(Kind.WORD, one_spelling(found.casefold()))
        elif match.lastgroup == "stop":
            yield Piece(Kind.STOP, ".")
        elif match.lastgroup == "pause" and found not in _QUOTES:
            yield Piece(Kind.PAUSE, ",")


def _with_whole_runs(of: Iterable[Piece]) -> Iterator[Piece]:
    """Join Chinese characters between which nothing is left, so that they are judged as they are released."""
    for is_han, row in groupby(of, key=lambda piece: piece.kind is Kind.HAN):
        if is_han:
            yield Piece(Kind.HAN, "".join(piece.text for piece in row))
        else:
            yield from row


def _without_idle_marks(of: Iterable[Piece]) -> Iterator[Piece]:
    """Leave one mark between two words, a stop before a pause, and none at the ends."""
    rows = [(is_mark, list(row)) for is_mark, row in groupby(of, key=lambda piece: piece.kind in CLAUSES)]
    for place, (is_mark, row) in enumerate(rows):
        if not is_mark:
            yield from row
        elif 0 < place < len(rows) - 1:
            yield next((mark for mark in row if mark.kind in SENTENCES), row[0])


def _takes_blank(last: str, is_chinese: bool) -> bool:
    """Whether a blank stands between a text's last character and a word of a spaced script."""
    return last not in "，。" and (last.isascii() or not is_chinese)


def _spell(piece: Piece, spellings: Mapping[str, str], begins: bool) -> str:
    word = spellings.get(piece.text, piece.text)
    if word == "i" or word.startswith("i'"):
        return "I" + word[1:]
    return word[0].upper() + word[1:] if begins and word.isascii() else word


@lru_cache(maxsize=4_096)
def _bare(character: str) -> str:
    """Return a Latin letter without its accents; another character as it is."""
    if character.isascii() or not character.isalpha():
        return character
    first = unicodedata.normalize("NFKD", character)[0]
    return first if first.isascii() and first.isalpha() else character
