"""Check `overlap`: no run of a chunk's words, and no stretch that is a chunk's with some words replaced.

Measured by `tests/bench/gate.py`: of 600 passages of 60 words of another handbook 2.3 % are blocked for nothing; runs
of 8 words and of 12 characters are always caught, 20 words or characters with a fifth replaced in 99.7 %.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from shared.disclosure.alignment import Positions, are_aligned, character_pairs, matches_of_pairs, positions_of
from shared.disclosure.english import is_function_word, stem_of
from shared.disclosure.folding import han_only
from shared.plain_text.normal_form import split_by_script, split_words
from shared.plain_text.runs import RunIndex, longest_foreign_run, runs_of

MOST_PLACES = 8
"""Places of a word in a chunk that are aligned: what stands oftener tells nothing, and would take long."""

_STRIDES = tuple((step, start) for step in (2, 3, 4) for start in range(step))
"""Every second, third and fourth word or character, from each of the first."""

_SEED = 3
"""A chunk that shares no run of three with a candidate is not aligned with it.

Twenty words of which a fifth is replaced keep a run of four at least.
"""


class _Script(NamedTuple):
    """How a script is compared: by runs of so many units, of so many `spread` between others, and by alignment.

    `own` is the shortest stretch of the user's that counts as theirs: shorter ones are anybody's. `aligned` is a score.
    `split` makes units of a folded text, `reduce` what is aligned of units but those at the places of the user's, and
    `match` finds where a chunk has that.
    """

    run: int
    spread: int
    own: int
    aligned: int
    split: Callable[[str], Sequence[str]]
    reduce: Callable[[Sequence[str], Collection[int]], list[str]]
    match: Callable[[Iterable[str], Positions], Iterable[Collection[int]]]


def _find_spaced(folded: str) -> list[str]:
    return split_by_script(split_words(folded))[0]


def _stems(words: Sequence[str], own: Collection[int]) -> list[str]:
    return ["" if place in own else stem_of(word) for place, word in enumerate(words) if not is_function_word(word)]


def _pairs(characters: Sequence[str], own: Collection[int]) -> list[str]:
    return ["" if place in own else pair for place, pair in enumerate(character_pairs("".join(characters)))]


def _places(stems: Iterable[str], positions: Positions) -> Iterable[Collection[int]]:
    return [positions.get(stem, ()) for stem in stems]


WORDS = _Script(7, 5, 4, 8, _find_spaced, _stems, _places)
CHARACTERS = _Script(10, 6, 6, 16, han_only, _pairs, matches_of_pairs)
"""From the specification: a run of 8 words or 12 characters is caught always, and the scores. At equal distances fewer
are chance: no language is written so."""


class Passages(NamedTuple):
    """What the chunks say in a script, and what of it the user said first, in the forms that are compared."""

    script: _Script
    runs: RunIndex
    spread: RunIndex
    own: RunIndex
    chunks: tuple[tuple[frozenset[tuple[str, ...]], Positions], ...]


def index_passages(chunk_texts: Sequence[str], user_text: str) -> tuple[Passages, ...]:
    """Index the chunks and the user's text, all folded, by words and by Chinese characters."""
    return tuple(_index(script, chunk_texts, user_text) for script in (WORDS, CHARACTERS))


def _index(script: _Script, chunk_texts: Sequence[str], user_text: str) -> Passages:
    texts = [script.split(text) for text in chunk_texts]
    runs, spread = RunIndex.of(script.run, texts), RunIndex.of(script.spread, texts)
    chunks = ((frozenset(runs_of(text, _SEED)), _first_places(script.reduce(text, ()))) for text in texts)
    return Passages(script, runs, spread, RunIndex.of(script.own, [script.split(user_text)]), tuple(chunks))


def shares_passage(folded: str, known: Sequence[Passages]) -> bool:
    """Tell whether a text is taken from a chunk, forwards or backwards, by runs or by alignment."""
    is_run = shares_run(folded, known) or shares_run(folded[::-1], known)
    return is_run or any(_is_aligned(each.script.split(folded), each) for each in known)


def shares_run(folded: str, known: Iterable[Passages]) -> bool:
    """Tell whether a text shares a run of words or characters with a chunk; words in either order."""
    return any(_shares_run(each.script.split(folded), each) for each in known)


def _shares_run(units: Sequence[str], known: Passages) -> bool:
    return (
        longest_foreign_run(units, known.runs, known.own) >= known.script.run
        or (known.script is WORDS and bool(known.runs.find_shared(units[::-1])))
        or any(known.spread.find_shared(units[start::step]) for step, start in _STRIDES)
    )


def _is_aligned(units: Sequence[str], known: Passages) -> bool:
    seeds, script = frozenset(runs_of(units, _SEED)), known.script
    own = frozenset(place for span in known.own.find_shared(units) for place in range(*span))
    compared = script.reduce(units, own)
    near = (positions for found, positions in known.chunks if not found.isdisjoint(seeds))
    return any(are_aligned(script.match(compared, positions), script.aligned) for positions in near)


def _first_places(words: Iterable[str]) -> Positions:
    return {word: places[:MOST_PLACES] for word, places in positions_of(words).items()}
