"""The word lists, read at their first use. `requirements/word_lists.py` writes them; the NOTICE states their licences.

A list is in the order of frequency unless it says otherwise, so that the number of a line is a word's rank.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_LISTS = Path(__file__).with_name("lists")


def lines(name: str) -> list[str]:
    """Return the lines of a list."""
    return (_LISTS / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]


@cache
def ranks(name: str) -> Mapping[str, int]:
    """Return the words of a list, each with its rank, the most frequent with 0."""
    return {word: rank for rank, word in enumerate(lines(name))}


@cache
def members(name: str) -> frozenset[str]:
    """Return the words of a list without an order."""
    return frozenset(lines(name))


@cache
def idioms() -> frozenset[str]:
    """Return the phrases that hold a numeral or a unit and state no quantity."""
    return frozenset(line.partition("\t")[0] for line in lines("idioms"))


@cache
def load_simplified() -> Mapping[int, str]:
    """Return the simplified form of each traditional Chinese character, for `str.translate`."""
    return {ord(line[0]): line[1] for line in lines("simplified")}


@cache
def mainland_words() -> Mapping[str, str]:
    """Return the mainland's word for each of Taiwan's, where they differ, both in simplified characters."""
    return dict(line.split("\t") for line in lines("taiwanese"))


@cache
def syllables() -> Mapping[str, str]:
    """Return the reading of each Chinese character in pinyin without tones; of several, the most frequent."""
    return dict(_syllables())


def _syllables() -> Iterator[tuple[str, str]]:
    for line in lines("pinyin"):
        reading, _, characters = line.partition(" ")
        for character in characters:
            yield character, reading
