"""Local alignment of two texts: the score of the stretch in which they are most alike, changed words included."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

MATCH, GAP = 2, 1
"""+2 a shared word, −1 each place at which one of the two has a word by itself (from the specification)."""

_LONGEST_GAP = 5
"""Further apart two matches do not add up: the gap costs more than the next two matches bring."""

Key = TypeVar("Key")
Value = TypeVar("Value")
Positions = Mapping[str, Sequence[int]]


def group_by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return for each first of pairs all that it is paired with, in order."""
    found: defaultdict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)


def positions_of(words: Iterable[str]) -> Positions:
    """Return where each word stands."""
    return group_by_key((word, position) for position, word in enumerate(words))


def character_pairs(text: str) -> list[str]:
    """Return each character with its follower: characters are compared by pairs, since one alone says nothing."""
    return [first + second for first, second in pairwise(text)]


def matches_of_pairs(pairs: Iterable[str], positions: Positions) -> list[set[int]]:
    """Return for each character the places that it shares with a text together with one of its neighbours.

    `positions` are those of the text's own pairs.
    """
    rows: list[set[int]] = []
    carried: set[int] = set()
    for pair in pairs:
        places = positions.get(pair, ())
        rows.append(carried.union(places))
        carried = {place + 1 for place in places}
    rows.append(carried)
    return rows


def are_aligned(matches: Iterable[Collection[int]], enough: int) -> bool:
    """Whether a local score of a text is enough, given for each of its words the places where another text has it."""
    rows: list[dict[int, int]] = []
    for places in matches:
        row = {place: _score(place, rows) for place in places}
        if max(row.values(), default=0) >= enough:
            return True
        rows.insert(0, row)
        del rows[_LONGEST_GAP:]
    return False


def _score(place: int, rows: list[dict[int, int]]) -> int:
    """Return the score of a match, given those of the words before, the nearest word first."""
    before = (
        row[earlier] - GAP * max(apart, distance)
        for distance, row in enumerate(rows)
        if row
        for apart, earlier in enumerate(range(place - 1, place - 1 - _LONGEST_GAP, -1))
        if earlier in row
    )
    return max((0, *before)) + MATCH
