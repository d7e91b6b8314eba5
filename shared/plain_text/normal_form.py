"""The normal form in which texts are compared: text that looks alike is equal, without invisible characters."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

_CJK = (
    "\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u31f0-\u31ff"  # iteration marks, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"  # Han beyond the basic plane
)
_IS_CJK = re.compile(f"[{_CJK}]")
_FIRST_CJK = "\u3005"
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_MARKS = frozenset({"Mn", "Me"})
_LETTERLESS_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Invisible characters that Unicode classifies as letters or symbols: Hangul fillers and the empty Braille pattern."""


def is_cjk(character: str) -> bool:
    """Tell whether a character is written without spaces and counts as a word of its own."""
    return character >= _FIRST_CJK and _is_cjk(character[0])


@cache
def is_invisible(character: str) -> bool:
    """Tell whether a character is invisible: controls, joiners, tags, private use and fillers, but not white space."""
    return character in _LETTERLESS_FILLERS or (
        not character.isspace() and unicodedata.category(character) in _INVISIBLE
    )


def normal_form(text: str) -> str:
    """Return a text in NFKC and lower case, without invisible characters and accents, with single blanks.

    The function is idempotent.
    """
    if text.isascii():
        visible = text if text.isprintable() else _without(text, is_invisible)
        return " ".join(visible.casefold().split())
    return " ".join(unicodedata.normalize("NFKC", text.translate(_FOLDED)).split())


def words(text: str) -> list[str]:
    """Return the words of a text in normal form: runs of letters and digits, each CJK character by itself."""
    return split_words(normal_form(text))


def split_words(normal: str) -> list[str]:
    """Return the words of a text that is in normal form already."""
    return normal.translate(_PARTED).split()


def split_by_script(found: list[str]) -> tuple[list[str], list[str]]:
    """Separate words into those of spaced scripts and CJK characters, each in order.

    Runs are counted in each by itself, so that a sprinkling of one script does not break a run of the other.
    """
    cjk = [word for word in found if word >= _FIRST_CJK and is_cjk(word)]
    return ([word for word in found if not is_cjk(word)] if cjk else found), cjk


class _Folding(dict[int, str]):
    """A table for `str.translate`, which is fast; each character is folded at its first use and then kept."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = "" if is_invisible(character) else unicodedata.normalize("NFKD", character).casefold()
        bare = "".join(part for part in unicodedata.normalize("NFKD", folded) if not _is_dropped(part))
        return self.setdefault(code, bare)


class _Parting(dict[int, str]):
    """A table for `str.translate`: letters and digits stay, CJK gets blanks around it, all else becomes a blank."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        other = character if character.isalnum() else " "
        return self.setdefault(code, f" {character} " if is_cjk(character) else other)


_FOLDED, _PARTED = _Folding(), _Parting()


@cache
def _is_cjk(character: str) -> bool:
    return _IS_CJK.match(character) is not None


@cache
def _is_dropped(character: str) -> bool:
    return unicodedata.category(character) in _MARKS or is_invisible(character)


def _without(text: str, is_dropped: Callable[[str], bool]) -> str:
    dropped = {ord(character): None for character in set(text) if is_dropped(character)}
    return text.translate(dropped) if dropped else text
