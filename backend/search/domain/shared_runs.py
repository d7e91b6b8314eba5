"""Runs of words that a text shares with a base, and the search of chunks for them.

Words of spaced scripts and CJK characters form separate sequences, so that neither breaks a run of the other. All
figures count as one and the same word, and neighbouring ones as a single one: whether a text shares a run with a base
does not depend on the figures in either, so that nobody can find out a figure by trying.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from backend.search.domain.number_words import is_of_a_figure
from backend.search.domain.tokenizing import tokenize
from shared.plain_text.normal_form import is_cjk, split_by_script, words
from shared.plain_text.reading import as_read
from shared.plain_text.runs import RunIndex, runs_of

_BLANK = " "
_ANY_FIGURE, _ANY_CJK_FIGURE = "0", "\u3007"
"""The words that stand for every figure, in each of the two kinds of sequences."""

_UNSPACED = re.compile(r"\S+")


class RunLengths(NamedTuple):
    """How many consecutive words, or CJK characters, count as taken from a base."""

    spaced: int
    cjk: int


MODEL_TEXT_RUNS = RunLengths(9, 14)
"""For text of a model: longer than the gate's 7 and 10, because it is compared with whole bases."""

DESCRIPTION_RUNS = RunLengths(7, 10)
"""For an owner's description of a base: the lengths of the gate."""


class Segment(NamedTuple):
    """One CJK character, or other characters without white space; `start` is the offset in the text."""

    start: int
    text: str
    is_cjk: bool

    @property
    def end(self) -> int:
        """The offset behind the segment."""
        return self.start + len(self.text)


class Word(NamedTuple):
    """A word in normal form, which is compared, and the tokens under which an index may hold it.

    A CJK character has one token, itself; an index holds pairs of adjacent characters. A figure has no tokens.
    """

    normal: str
    tokens: tuple[str, ...]

    @property
    def is_figure(self) -> bool:
        """Whether it stands for a figure."""
        return self.normal in (_ANY_FIGURE, _ANY_CJK_FIGURE)


class WordSequence(NamedTuple):
    """Consecutive words, of spaced scripts or CJK; a base is searched for any `run` of them in a row."""

    words: tuple[Word, ...]
    run: int


class Needed(NamedTuple):
    """Index tokens, of which a chunk must have at least `least` to hold a run."""

    tokens: frozenset[str]
    least: int


def segments_of(text: str) -> Iterator[Segment]:
    """Yield the segments of a text in order."""
    for unspaced in _UNSPACED.finditer(text):
        start, found = unspaced.start(), unspaced[0]
        if found.isascii():
            yield Segment(start, found, is_cjk=False)
            continue
        for is_of_cjk, group in groupby(found, is_cjk):
            characters = "".join(group)
            for segment in characters if is_of_cjk else (characters,):
                yield Segment(start, segment, is_of_cjk)
                start += len(segment)


def words_of(segment: Segment) -> list[Word]:
    """Return the words of a segment.

    Where index and normal form split it differently, a single word gets all the tokens and several words get none.
    """
    normals, tokens = words(segment.text), tokenize(segment.text)
    if len(normals) == len(tokens):
        return [_word(normal, (token,)) for normal, token in zip(normals, tokens, strict=True)]
    return [_word(normal, tuple(tokens) if len(normals) == 1 else ()) for normal in normals]


def blind_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of spaced scripts and the CJK characters of a text as runs are compared."""
    spaced, cjk = split_by_script(words(text))
    return _blind(spaced), _blind(cjk)


def part_words(found: Iterable[Word]) -> tuple[list[Word], list[Word]]:
    """Separate words into those of spaced scripts and CJK characters, each in order."""
    both: tuple[list[Word], list[Word]] = ([], [])
    for word in found:
        kind = both[is_cjk(word.normal)]
        if not (word.is_figure and kind and kind[-1].is_figure):
            kind.append(word)
    return both


def sequences_of(text: str, lengths: RunLengths) -> tuple[WordSequence, ...]:
    """Return the sequences of a text that are long enough for a run."""
    both = zip(part_words(word for segment in segments_of(text) for word in words_of(segment)), lengths, strict=True)
    return tuple(WordSequence(tuple(found), run) for found, run in both if len(found) >= run)


def foreign_starts(found: Sequence[Word], run: int, own: RunIndex) -> list[int]:
    """Return where the runs begin that are not in the writer's own text; `own` has runs of the same length."""
    normals = [word.normal for word in found]
    return [start for start, words_of_run in enumerate(runs_of(normals, run)) if not own.holds(words_of_run)]


def foreign_sequences(found: Sequence[Word], run: int, own: RunIndex) -> list[WordSequence]:
    """Return the longest sequences without a run of the writer's own text; `own` has runs of the same length."""
    # In consecutive runs, the index among the foreign ones and the start grow together.
    starts = foreign_starts(found, run, own)
    groups = [list(group) for _, group in groupby(enumerate(starts), lambda place: place[1] - place[0])]
    return [WordSequence(tuple(found[group[0][1] : group[-1][1] + run]), run) for group in groups]


def join_runs(sequences: Iterable[WordSequence]) -> frozenset[str]:
    """Return all runs of these sequences in the form in which `holds_any` searches for them."""
    return frozenset(
        _join(run) for sequence in sequences for run in runs_of([word.normal for word in sequence.words], sequence.run)
    )


def holds_any(text: str, runs: Collection[str]) -> bool:
    """Return whether a chunk's text holds one of these joined runs, as it is written or as a reader sees it."""
    forms = [_join(part) for form in {text, as_read(text)} for part in blind_words(form)]
    return any(run in form for run in runs for form in forms)


def tokens_of(sequence: WordSequence) -> list[tuple[str, ...]]:
    """Return the tokens under which an index may hold each word of a sequence, or each pair of characters in CJK."""
    if not is_cjk(sequence.words[0].normal):
        return [word.tokens for word in sequence.words]
    return [
        (former.tokens[0] + latter.tokens[0],) if former.tokens and latter.tokens else ()
        for former, latter in zip(sequence.words, sequence.words[1:], strict=False)
    ]


MAX_UNKNOWN_WORDS = 3
"""How many words of a run may have other tokens in the index, as with accents that a model leaves out."""

MAX_MARKS = 7
"""How many adjacent CJK characters of a run may be separated in the base, by punctuation that a model leaves out or
moves: a list of words of two characters has seven such marks."""

_TELLING_WORDS, _TELLING_PAIRS = 3, 2


def find_needed(sequence: WordSequence, chunk_counts: Mapping[str, int]) -> set[Needed]:
    """Return the tokens that a chunk must have to hold each run; `chunk_counts` is the number of chunks by token.

    Only the rarest tokens are looked up, because they exclude most chunks. Figures are never looked up.
    """
    in_cjk = is_cjk(sequence.words[0].normal)
    tokens, blind = tokens_of(sequence), _blind_places(sequence, width=1 + in_cjk)
    width, may_lack, telling = (
        (sequence.run - 1, MAX_MARKS, MAX_MARKS + _TELLING_PAIRS)
        if in_cjk
        else (sequence.run, MAX_UNKNOWN_WORDS, _TELLING_WORDS)
    )
    needed: set[Needed] = set()
    for start in range(len(tokens) - width + 1):
        run = tokens[start : start + width]
        known = [found for found in run if found and all(chunk_counts.get(token) for token in found)]
        unknown = width - len(known) - sum(blind[start : start + width])
        if not known or unknown > may_lack:
            continue
        rarest = sorted({token for found in known for token in found}, key=lambda token: (chunk_counts[token], token))
        chosen = rarest[:telling]
        lacking = MAX_MARKS - unknown if in_cjk else 0
        needed.add(Needed(frozenset(chosen), max(1, len(chosen) - lacking)))
    return needed


def _join(found: Sequence[str]) -> str:
    return f"{_BLANK}{_BLANK.join(found)}{_BLANK}"


def _word(normal: str, tokens: tuple[str, ...]) -> Word:
    if not is_of_a_figure(normal):
        return Word(normal, tokens)
    return Word(_ANY_CJK_FIGURE if is_cjk(normal) else _ANY_FIGURE, ())


def _blind(found: Sequence[str]) -> list[str]:
    return [word.normal for kind in part_words(_word(normal, ()) for normal in found) for word in kind]


def _blind_places(sequence: WordSequence, width: int) -> list[bool]:
    """Return for each word, or each pair of characters, whether a figure is in it."""
    figures = [word.is_figure for word in sequence.words]
    return [any(figures[place : place + width]) for place in range(len(figures) - width + 1)]
