"""The form in which passages are compared: normal form, with traditional Chinese written as simplified."""

import re

from shared.disclosure.word_lists import load_simplified
from shared.plain_text.normal_form import normal_form

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_LETTERS = re.compile("[a-z]+")


def fold(text: str) -> str:
    """Return a text in normal form and simplified Chinese."""
    normal = normal_form(text)
    return normal if normal.isascii() else normal.translate(load_simplified())


def letters_only(folded: str) -> str:
    """Return the Latin letters of a folded text without anything between them."""
    return "".join(_LETTERS.findall(folded))


def han_only(folded: str) -> str:
    """Return the Chinese characters of a folded text without anything between them."""
    return "".join(_HAN.findall(folded))
