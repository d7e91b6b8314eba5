"""The language of a text, of those that the gate can read."""

from enum import StrEnum

from shared.disclosure import english
from shared.disclosure.canonical import Kind, han_in, pieces
from shared.disclosure.own_words import OwnWords

_CHARACTERS_OF_A_WORD = 2
"""A Chinese word has about two characters."""

_KNOWN_SHARE = 0.5
"""A text in a spaced script is English if so many of its words are in the English dictionary."""


class Language(StrEnum):
    """A language; `OTHER` is one that the gate cannot read."""

    ENGLISH = "en"
    CHINESE = "zh"
    OTHER = "other"


def language_of(text: str) -> Language | None:
    """Return the language of most of a text; None for a text without a word."""
    found = pieces(text)
    words = [piece.text for piece in found if piece.kind is Kind.WORD and not piece.text[0].isdigit()]
    han = len("".join(han_in(found))) / _CHARACTERS_OF_A_WORD
    if not words and not han:
        return None
    if han >= len(words):
        return Language.CHINESE
    known = sum(english.is_of_language(word.removesuffix("'s")) for word in words)
    return Language.ENGLISH if known >= _KNOWN_SHARE * len(words) else Language.OTHER


def has_other_words(text: str, own: OwnWords) -> bool:
    """Whether a Chinese text holds words of a spaced script, or an English one Chinese, that the user did not write."""
    found = pieces(text)
    words = [piece.text for piece in found if piece.kind is Kind.WORD and not own.holds(piece.text)]
    return bool(words) and not all(map(own.holds_han, han_in(found)))
