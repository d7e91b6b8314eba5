"""The tokenizer of all search indexes, so that they rank alike, and the other forms under which a word is found.

An index holds the tokens of a text and beside them its further tokens: those of its words without accents, of its
traditional Chinese in simplified characters, and of its numbers without separators. A word of a query is found under
any of its forms.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from operator import add
from typing import NamedTuple

from shared.disclosure.word_lists import load_simplified, mainland_words

TOKENS_VERSION = 2
"""What an index holds of a text has changed so often; what was indexed by an earlier version is indexed anew."""

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

_JOINER = "\u2060"
_UNBROKEN_BLANKS = "\u00a0\u2009\u202f"
_SEPARATED = re.compile(rf"[a-z0-9]+(?:[-./,:'_\u2010-\u2015\u2019\u2212{_JOINER}][a-z0-9]+)+")
_WITH_DIGIT = re.compile(r"(?<!\S)[^\s0-9]*+[0-9]\S*")
_HAS_DIGIT = re.compile("[0-9]")
_LETTERS_AND_DIGITS = re.compile(r"(?<![a-z0-9])(?:([a-z]+)([0-9]+)|([0-9]+)([a-z]+))(?![a-z0-9])")
_LEAST_JOINED = 4
"""Shorter ones, as of `3.5` and `24/7`, are like many other numbers by chance."""

_PLAIN_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})


class _Bare(dict[int, str]):
    """For `str.translate`: each letter without its marks, decomposed at its first use."""

    def __missing__(self, code: int) -> str:
        parts = unicodedata.normalize("NFKD", _PLAIN_LETTERS.get(chr(code), chr(code)))
        return self.setdefault(code, "".join(part for part in parts if not unicodedata.combining(part)))


_BARE = _Bare()


class IndexedText(NamedTuple):
    """What an index holds of a text: its tokens, whose number is its length, and its further tokens in any order."""

    tokens: list[str]
    further: list[str]


def tokenize(text: str) -> list[str]:
    """Split a text into index tokens, repeated ones repeated, in text order.

    Spaced scripts give lower-case words; scripts without spaces give overlapping pairs of characters, a lone
    character itself. Tokens hold letters and digits only, never a blank or ASCII punctuation.
    """
    plain = _compatible(text)
    return _split_ascii(plain) if plain.isascii() else _split(_RUN.findall(plain))


def tokenize_indexed(text: str) -> IndexedText:
    """Return all tokens under which a text is found."""
    plain = _compatible(text)
    further = list(_numbers(plain))
    if plain.isascii():
        return IndexedText(_split_ascii(plain), further)
    runs, is_traditional = _RUN.findall(plain), _is_traditional(plain)
    for run in runs:
        if forms := _forms(run, is_traditional=is_traditional):
            known = set(_tokens_of(run))
            for form in forms:
                tokens = _tokens_of(form)
                further += [token for token in tokens if token not in known]
                known.update(tokens)
    return IndexedText(_split(runs), further)


def query_terms(text: str) -> dict[str, tuple[str, ...]]:
    """Return the distinct terms of a query in its order, each with the tokens under any of which it is found."""
    plain = _compatible(text)
    is_traditional = _is_traditional(plain)
    terms: dict[str, tuple[str, ...]] = {}
    for run in _RUN.findall(plain):
        tokens = _tokens_of(run)
        forms = [_tokens_of(form) for form in _forms(run, is_traditional=is_traditional)]
        beside = list(zip(*(form for form in forms if len(form) == len(tokens)), strict=True)) or [()] * len(tokens)
        for token, others in zip(tokens, beside, strict=True):
            terms[token] = tuple(dict.fromkeys((*terms.get(token, (token,)), *others)))
        for token in (token for form in forms if len(form) != len(tokens) for token in form):
            terms.setdefault(token, (token,))
    for token in _numbers(plain):
        terms.setdefault(token, (token,))
    return terms


def count_terms(terms: Mapping[str, Collection[str]], counts: Mapping[str, int]) -> dict[str, int]:
    """Return how often a text has each of these terms, from how often it has each token; without those it lacks.

    One word of a text may have several of the forms, so that the most frequent of them tells.
    """
    found = {term: max(counts.get(token, 0) for token in tokens) for term, tokens in terms.items()}
    return {term: times for term, times in found.items() if times}


def _tokens_of(run: str) -> list[str]:
    if run < _FIRST_UNSPACED or not _IS_UNSPACED.match(run):
        return [_short(run)]
    return [run] if len(run) == 1 else list(map(add, run, run[1:]))


def _forms(run: str, *, is_traditional: bool) -> list[str]:
    """Return the other forms of a run: without accents, umlauts spelt out; in simplified characters, mainland words."""
    if run.isascii():
        return []
    if run < _FIRST_UNSPACED or not _IS_UNSPACED.match(run):
        forms = (run.translate(_BARE), run.translate(_SPELT_OUT).translate(_BARE))
    elif is_traditional:
        simplified, words = run.translate(load_simplified()), mainland_words()
        forms = (simplified, _taiwanese().sub(lambda found: words[found[0]], simplified))
    else:
        return []
    return [form for form in dict.fromkeys(forms) if form != run]


def _is_traditional(plain: str) -> bool:
    """Tell whether a text has a traditional character: words that both sides of the strait have differ in meaning."""
    return _IS_UNSPACED.search(plain) is not None and _traditional().search(plain) is not None


@cache
def _traditional() -> re.Pattern[str]:
    return re.compile(f"[{''.join(map(chr, load_simplified()))}]")


@cache
def _taiwanese() -> re.Pattern[str]:
    """Find the longest word first."""
    return re.compile("|".join(sorted(mainland_words(), key=len, reverse=True)))


def _numbers(plain: str) -> Iterator[str]:
    """Yield numbers without their separators, and the letters and the digits of their parts.

    Those of NOR0707-60 are nor070760, nor and 0707: where separators stand, and whether as blanks, does not matter.
    """
    for passage in _WITH_DIGIT.findall(plain):
        for found in _SEPARATED.findall(passage):
            joined = "".join(filter(str.isalnum, found))
            if len(joined) >= _LEAST_JOINED and _HAS_DIGIT.search(joined):
                yield _short(joined)
                for parts in _LETTERS_AND_DIGITS.findall(found):
                    yield from (_short(part) for part in parts if part)


def _compatible(text: str) -> str:
    """Normalize to NFKC in lower case; wide marks are replaced first, because a text to be changed takes twice as long.

    Blanks that keep the digits of a number together become a joiner, which is no blank.
    """
    if text.isascii():
        return text.lower()
    for mark in _WIDE_MARKS:
        text = text.replace(mark, " ")
    for blank in _UNBROKEN_BLANKS:
        text = text.replace(blank, _JOINER)
    return unicodedata.normalize("NFKC", text).lower()


def _split_ascii(plain: str) -> list[str]:
    runs = plain.translate(_BLANK_UNLESS_WORD).split()
    return runs if max(map(len, runs), default=0) <= MAX_TOKEN_CHARACTERS else [_short(run) for run in runs]


def _split(runs: Iterable[str]) -> list[str]:
    tokens: list[str] = []
    for run in runs:
        tokens += _tokens_of(run)
    return tokens


def _short(run: str) -> str:
    return run[:MAX_TOKEN_CHARACTERS]
