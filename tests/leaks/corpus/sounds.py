"""How Chinese characters sound, without tones, from a table beside this file: first readings, then further ones."""

import functools
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

_MOST_READINGS = 8


@functools.cache
def readings() -> Mapping[str, tuple[str, ...]]:
    """Return the syllables of each character that is known, the commonest first."""
    found: dict[str, list[str]] = {}
    for syllable, characters in _lines():
        for character in characters:
            found.setdefault(character, []).append(syllable)
    return {character: tuple(syllables) for character, syllables in found.items()}


@functools.cache
def alike() -> Mapping[str, str]:
    """Return the characters of each syllable, as they are read first."""
    return dict(reversed([*_lines()]))


def syllables(text: str) -> list[str]:
    """Return the first reading of each character that has one."""
    known = readings()
    return [known[character][0] for character in text if character in known]


def all_syllables(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the ways in which a name can be read aloud."""
    known = readings()
    ways = (known[character] for character in text if character in known)
    yield from itertools.islice(itertools.product(*ways), _MOST_READINGS)


def _lines() -> Iterator[tuple[str, str]]:
    path = Path(__file__).with_name("pinyin.txt")
    for line in path.read_text(encoding="utf-8").splitlines():
        syllable, _, characters = line.partition(" ")
        yield syllable, characters
