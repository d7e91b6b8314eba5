"""The tokenizer of both search indexes, so that both rank alike."""

import re
import unicodedata
from operator import add

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul: spaced, but its particles are glued to the word
    "\U00020000-\U0003ffff"  # Han beyond the basic plane
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_FIRST_UNSPACED = "\u0e00"
_WIDE_MARKS = "\uff0c\uff01\uff1f\uff1b\uff1a\uff08\uff09"
_BLANK_UNLESS_WORD = {code: " " for code in range(128) if not chr(code).isalnum()}
"""For `str.translate`, which on ASCII is ten times as fast as a regular expression."""

MAX_TOKEN_CHARACTERS = 64
"""Only the beginning of a longer run of letters is indexed; nobody searches for more of it."""


def tokenize(text: str) -> list[str]:
    """Split a text into index tokens, repeated ones repeated, in text order.

    Spaced scripts give lower-case words; scripts without spaces give overlapping pairs of characters, a lone
    character itself. Tokens hold letters and digits only, never a blank or ASCII punctuation.
    """
    plain = _compatible(text).lower()
    if plain.isascii():
        runs = plain.translate(_BLANK_UNLESS_WORD).split()
        return runs if max(map(len, runs), default=0) <= MAX_TOKEN_CHARACTERS else [_short(run) for run in runs]
    tokens: list[str] = []
    for run in _RUN.findall(plain):
        if run < _FIRST_UNSPACED or not _IS_UNSPACED.match(run):
            tokens.append(_short(run))
        elif len(run) == 1:
            tokens.append(run)
        else:
            tokens.extend(map(add, run, run[1:]))
    return tokens


def _compatible(text: str) -> str:
    """Normalize to NFKC; wide marks are replaced first, because a text to be changed doubles the time of tokenizing."""
    if not text.isascii():
        for mark in _WIDE_MARKS:
            text = text.replace(mark, " ")
    return unicodedata.normalize("NFKC", text)


def _short(run: str) -> str:
    return run[:MAX_TOKEN_CHARACTERS]
