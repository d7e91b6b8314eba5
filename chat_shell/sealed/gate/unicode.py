"""Check `unicode`: letters of English and Chinese with their punctuation, and nothing that hides or imitates.

An allow-list takes the place of a table of confusables: a letter that does not fold to a plain Latin one, or is no
Chinese character, is refused, so that no Greek or Cyrillic look-alike gets as far as a comparison.
"""

import unicodedata
from functools import cache

from shared.plain_text.normal_form import is_invisible, normal_form

_PUNCTUATION = frozenset(
    "“”‘’„‟«»‹›—–―‐‑−…·•"
    "、。，．；：？！（）《》〈〉「」『』【】〔〕～〜％＄￥＆＋－／＝＜＞＊＃＠｜＂＇"
    "\u00a0\u202f\u3000"
)  # fmt: skip
_LATIN_WITHOUT_ASCII = frozenset("æøœðþđłħ")


def is_foreign(text: str) -> bool:
    """Tell whether a text holds a character that no English or Chinese summary needs.

    Numerals of all kinds are left to the check of figures, which sees them before they are folded.
    """
    return not all(_is_allowed(character) for character in set(unicodedata.normalize("NFC", text)))


@cache
def _is_allowed(character: str) -> bool:
    if character.isascii():
        return character.isprintable()
    if is_invisible(character):
        return False
    if character in _PUNCTUATION or unicodedata.category(character).startswith("N"):
        return True
    return _is_han(character) or _is_latin(character)


def _is_han(character: str) -> bool:
    return unicodedata.name(character, "").startswith("CJK UNIFIED IDEOGRAPH")


def _is_latin(character: str) -> bool:
    folded = normal_form(character)
    return character.isalpha() and (folded in _LATIN_WITHOUT_ASCII or (folded.isascii() and folded.isalpha()))
