"""The gate's normal form: that of all comparisons, with traditional Chinese written as simplified."""

import re
from functools import lru_cache

from chat_shell.sealed.gate.word_lists import SIMPLIFIED
from shared.plain_text.normal_form import normal_form

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_LETTERS = re.compile("[a-z]+")

STOP_CHARACTERS = frozenset(
    "的了是在和与及或等对为由被将把从到于以其该本各每不未无有也都就才又再很更最较这那此而且但并则之所着过地得"
)
"""Chinese characters that join words rather than being part of one."""


def fold(text: str) -> str:
    """Return the form in which the gate compares: `normal_form`, then simplified Chinese."""
    if text.isascii() and text.isalnum():
        return text.casefold()
    normal = normal_form(text)
    return normal if normal.isascii() else normal.translate(SIMPLIFIED)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Cut the commonest English endings, so that "controls" and "controlled" are one word with "control"."""
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("ey") if len(word) > 3 else word


def letters_only(folded: str) -> str:
    """Return the Latin letters of a folded text without anything between them."""
    return "".join(_LETTERS.findall(folded))


def han_only(folded: str) -> str:
    """Return the Chinese characters of a folded text without anything between them."""
    return "".join(_HAN.findall(folded))
