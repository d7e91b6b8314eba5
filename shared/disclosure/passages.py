"""Check `overlap`: no run of a chunk's words, and no stretch that is a chunk's with some words replaced.

Measured by `tests/bench/gate.py`: of 600 passages of 60 words of another handbook 2.3 % are blocked for nothing; runs
of 8 words and of 12 characters are always caught, 20 words or characters with a fifth replaced in 99.7 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.disclosure.alignment import Positions, are_aligned, character_pairs, matches_of_pairs, positions_of
from shared.disclosure.english import is_function_word, stem_of
from shared.disclosure.folding import han_only, letters_only
from shared.plain_text.normal_form import split_by_script, split_words
from shared.plain_text.runs import RunIndex, longest_foreign_run, runs_of

RUN_WORDS = 7
RUN_CHARACTERS = 10
"""From the specification: a run of 8 words or 12 characters is caught always."""

SPREAD_WORDS, SPREAD_CHARACTERS = 5, 6
"""Of words or characters between others, at equal distances, fewer are chance: no language is written so."""

RUN_LETTERS = 36
"""Letters in a row without regard to blanks: about seven words, however they are spaced or joined."""

_HALF_RUN = RUN_LETTERS // 2

OWN_WORDS, OWN_CHARACTERS = 4, 6
"""The shortest stretch of the user's that counts as their own words: shorter ones are anybody's."""

ALIGNED_WORDS = 8
ALIGNED_CHARACTERS = 16
"""Scores, from the specification."""

MOST_PLACES = 8
"""Places of a word in a chunk that are aligned: what stands oftener tells nothing, and would take long."""

_STRIDES = tuple((step, start) for step in (2, 3, 4) for start in range(step))
"""Every second, third and fourth word or character, from each of the first."""

_SEED = 3
"""A chunk that shares no run of three with a candidate is not aligned with it.

Twenty words of which a fifth is replaced keep a run of four at least.
"""


@dataclass(frozen=True, slots=True)
class _ChunkForm:
    """One chunk as the alignment reads it."""

    seeds: frozenset[tuple[str, ...]]
    stems: Positions
    character_seeds: frozenset[str]
    pairs: Positions


@dataclass(frozen=True, slots=True)
class _Letters:
    """The letters of the chunks and of the user, without blanks; every half run of a chunk that begins at a half."""

    chunks: str
    halves: frozenset[str]
    own: str

    @classmethod
    def of(cls, chunk_texts: Iterable[str], user_text: str) -> "_Letters":
        texts = [letters_only(text) for text in chunk_texts]
        starts = ((text, start) for text in texts for start in range(0, len(text) - _HALF_RUN + 1, _HALF_RUN))
        halves = frozenset(text[start : start + _HALF_RUN] for text, start in starts)
        return cls("\n".join(texts), halves, letters_only(user_text))

    def are_shared(self, letters: str) -> bool:
        """Tell whether a run is a chunk's and not the user's; whichever it is, it holds one of the halves."""
        places = (place for place, half in enumerate(_slices(letters, _HALF_RUN)) if half in self.halves)
        around = (letters[max(0, place - _HALF_RUN) : place + RUN_LETTERS] for place in places)
        return any(run in self.chunks and run not in self.own for part in around for run in _slices(part, RUN_LETTERS))


@dataclass(frozen=True, slots=True)
class Passages:
    """What the chunks say, and what of it the user said first, in the forms that are compared."""

    words: RunIndex
    characters: RunIndex
    spread_words: RunIndex
    spread_characters: RunIndex
    letters: "_Letters"
    own_words: RunIndex
    own_characters: RunIndex
    chunks: tuple[_ChunkForm, ...]


def index_passages(chunk_texts: Sequence[str], user_text: str) -> Passages:
    """Index the chunks and the user's text, all folded."""
    spaced = [_find_spaced(text) for text in chunk_texts]
    characters = [han_only(text) for text in chunk_texts]
    return Passages(
        words=RunIndex.of(RUN_WORDS, spaced),
        characters=RunIndex.of(RUN_CHARACTERS, characters),
        spread_words=RunIndex.of(SPREAD_WORDS, spaced),
        spread_characters=RunIndex.of(SPREAD_CHARACTERS, characters),
        letters=_Letters.of(chunk_texts, user_text),
        own_words=RunIndex.of(OWN_WORDS, [_find_spaced(user_text)]),
        own_characters=RunIndex.of(OWN_CHARACTERS, [han_only(user_text)]),
        chunks=tuple(map(_chunk_form, spaced, characters)),
    )


def shares_passage(folded: str, known: Passages) -> bool:
    """Tell whether a text is taken from a chunk, forwards or backwards, by runs or by alignment."""
    return (
        shares_run(folded, known)
        or shares_run(folded[::-1], known)
        or _are_words_aligned(_find_spaced(folded), known)
        or _are_characters_aligned(han_only(folded), known)
    )


def shares_run(folded: str, known: Passages) -> bool:
    """Tell whether a text shares a run of words, characters or letters with a chunk; words in either order."""
    words, characters = _find_spaced(folded), han_only(folded)
    return (
        longest_foreign_run(words, known.words, known.own_words) >= RUN_WORDS
        or bool(known.words.find_shared(words[::-1]))
        or longest_foreign_run(characters, known.characters, known.own_characters) >= RUN_CHARACTERS
        or known.letters.are_shared(letters_only(folded))
        or any(known.spread_words.find_shared(words[start::step]) for step, start in _STRIDES)
        or any(known.spread_characters.find_shared(characters[start::step]) for step, start in _STRIDES)
    )


def _are_words_aligned(words: Sequence[str], known: Passages) -> bool:
    seeds, own = frozenset(runs_of(words, _SEED)), _find_covered(words, known.own_words)
    stems = ["" if place in own else stem_of(word) for place, word in enumerate(words) if not is_function_word(word)]
    near = (chunk for chunk in known.chunks if not chunk.seeds.isdisjoint(seeds))
    return any(are_aligned([chunk.stems.get(word, ()) for word in stems], ALIGNED_WORDS) for chunk in near)


def _are_characters_aligned(characters: str, known: Passages) -> bool:
    seeds, own = frozenset(_slices(characters, _SEED)), _find_covered(characters, known.own_characters)
    pairs = ["" if place in own else pair for place, pair in enumerate(character_pairs(characters))]
    near = (chunk for chunk in known.chunks if not chunk.character_seeds.isdisjoint(seeds))
    return any(are_aligned(matches_of_pairs(pairs, chunk.pairs), ALIGNED_CHARACTERS) for chunk in near)


def _chunk_form(words: list[str], characters: str) -> _ChunkForm:
    return _ChunkForm(
        seeds=frozenset(runs_of(words, _SEED)),
        stems=_places_of(stem_of(word) for word in words if not is_function_word(word)),
        character_seeds=frozenset(_slices(characters, _SEED)),
        pairs=_places_of(character_pairs(characters)),
    )


def _places_of(words: Iterable[str]) -> Positions:
    return {word: places[:MOST_PLACES] for word, places in positions_of(words).items()}


def _find_covered(words: Sequence[str], own: RunIndex) -> frozenset[int]:
    return frozenset(place for span in own.find_shared(words) for place in range(*span))


def _find_spaced(folded: str) -> list[str]:
    return split_by_script(split_words(folded))[0]


def _slices(text: str, length: int) -> Iterable[str]:
    return (text[start : start + length] for start in range(len(text) - length + 1))
