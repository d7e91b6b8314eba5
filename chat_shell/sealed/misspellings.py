"""Slips of the hand in frequent English words: a letter left out, or two neighbours swapped."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice

from shared.disclosure import english
from shared.disclosure.word_lists import lines

_FREQUENT_WORDS = 4_000
_NAMES = ("english_given_names", "english_surnames")

_UNMARKED_WORD = re.compile(r"(?<![\w¤'-])[a-z]{3,20}(?![\w'-])")


def respell(text: str) -> str:
    """Return a text in lower case with the frequent words that its unknown words were probably meant to be."""
    return _UNMARKED_WORD.sub(lambda word: _slips().get(word[0], word[0]), text)


@cache
def _slips() -> Mapping[str, str]:
    words = islice(lines("english_everyday"), _FREQUENT_WORDS)
    names = frozenset(chain.from_iterable(map(lines, _NAMES)))
    # the most frequent word comes last, so that it stays where two words have a slip in common
    return {slip: word for word in reversed(list(words)) for slip in _slips_of(word) if not _is_word(slip, names)}


def _is_word(slip: str, names: frozenset[str]) -> bool:
    return slip in names or english.is_known(slip) or english.is_quantity(slip)


def _slips_of(word: str) -> Iterator[str]:
    """Yield a word with a slip behind its first letter, which is seldom wrong."""
    for place in range(1, len(word)):
        yield word[:place] + word[place + 1 :]
        yield word[:place] + word[place : place + 2][::-1] + word[place + 2 :]
