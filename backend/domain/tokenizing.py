"""Words as both databases index them: one tokenizer, so that both rank alike."""

import re
import unicodedata

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul: spaced, but its particles are glued to the word
    "\U00020000-\U0003ffff"  # Han beyond the basic plane
)
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")
MAX_TOKEN_CHARACTERS = 64
"""A longer run of letters is no word anybody searches for; its beginning is."""


def tokenize(text: str) -> list[str]:
    """Split a text into index tokens, repeated ones repeated, in text order.

    Spaced scripts give lower-case words; scripts without spaces give overlapping pairs of characters, a lone
    character itself. Tokens hold letters and digits only, never a blank or ASCII punctuation.
    """
    tokens: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).lower()):
        run = match.group()
        if match.lastgroup is None:
            tokens.append(run[:MAX_TOKEN_CHARACTERS])
        else:
            tokens.extend(_pairs(run))
    return tokens


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[start : start + 2] for start in range(len(run) - 1)]
