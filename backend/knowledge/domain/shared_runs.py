"""Runs of words that a text may share with a base, and the one way in which a chunk is asked for them.

Words of spaced scripts and CJK characters are counted apart, so that neither breaks a run of the other.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from backend.knowledge.domain.tokenizing import tokenize
from shared.plain_text.normal_form import is_cjk, spaced_and_cjk, words
from shared.plain_text.reading import as_read
from shared.plain_text.runs import RunIndex, runs_of

_BLANK = " "
_UNSPACED = re.compile(r"\S+")


class RunLengths(NamedTuple):
    """How many words, or CJK characters, in a row count as taken from a base."""

    spaced: int
    cjk: int


SAID = RunLengths(9, 14)
"""In what a model says: above the gate's 7 and 10, because a whole base is compared."""

DESCRIBED = RunLengths(7, 10)
"""In what an owner writes about a base: as the gate."""


class Piece(NamedTuple):
    """A CJK character, or what stands between white space and CJK; `start` is its place in its text."""

    start: int
    text: str
    is_cjk: bool

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


class Word(NamedTuple):
    """A word in normal form, which is compared, and the tokens under which an index may have it.

    A CJK character has one token, itself: an index has it with its neighbour.
    """

    normal: str
    tokens: tuple[str, ...]


class Stretch(NamedTuple):
    """Words in a row, of spaced scripts or CJK; asked is whether a base holds any `run` of them in a row."""

    words: tuple[Word, ...]
    run: int


class Needed(NamedTuple):
    """Index tokens, of which a chunk must have so many to hold a run."""

    tokens: frozenset[str]
    least: int


def pieces_of(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text in order."""
    for unspaced in _UNSPACED.finditer(text):
        start, found = unspaced.start(), unspaced[0]
        if found.isascii():
            yield Piece(start, found, is_cjk=False)
            continue
        for is_of_cjk, group in groupby(found, is_cjk):
            characters = "".join(group)
            for piece in characters if is_of_cjk else (characters,):
                yield Piece(start, piece, is_of_cjk)
                start += len(piece)


def words_of(piece: Piece) -> list[Word]:
    """Return the words of a piece; where index and normal form part it otherwise, each gets all its tokens or none."""
    normals, tokens = words(piece.text), tokenize(piece.text)
    if len(normals) == len(tokens):
        return [Word(normal, (token,)) for normal, token in zip(normals, tokens, strict=True)]
    return [Word(normal, tuple(tokens) if len(normals) == 1 else ()) for normal in normals]


def parted(found: Iterable[Word]) -> tuple[list[Word], list[Word]]:
    """Part words into those of spaced scripts and CJK characters, each in order."""
    both: tuple[list[Word], list[Word]] = ([], [])
    for word in found:
        both[is_cjk(word.normal)].append(word)
    return both


def stretches_of(text: str, lengths: RunLengths) -> tuple[Stretch, ...]:
    """Return what is to be asked of a text."""
    both = zip(parted(word for piece in pieces_of(text) for word in words_of(piece)), lengths, strict=True)
    return tuple(Stretch(tuple(found), run) for found, run in both if len(found) >= run)


def foreign_stretches(found: Sequence[Word], run: int, own: RunIndex) -> list[Stretch]:
    """Return the stretches of which no run is among the writer's own, which are of the same length."""
    normals = [word.normal for word in found]
    foreign = [start for start, words_of_run in enumerate(runs_of(normals, run)) if not own.holds(words_of_run)]
    # Of runs that follow each other, number and place grow together.
    groups = [list(group) for _, group in groupby(enumerate(foreign), lambda place: place[1] - place[0])]
    return [Stretch(tuple(found[group[0][1] : group[-1][1] + run]), run) for group in groups]


def joined_runs(stretches: Iterable[Stretch]) -> frozenset[str]:
    """Return all runs of these stretches in the form in which texts are asked for them."""
    return frozenset(
        _joined(run) for stretch in stretches for run in runs_of([word.normal for word in stretch.words], stretch.run)
    )


def holds_any(text: str, runs: Collection[str]) -> bool:
    """Tell whether a chunk's text holds one of these joined runs, as it is written or as it is read."""
    forms = [_joined(part) for form in {text, as_read(text)} for part in spaced_and_cjk(words(form))]
    return any(run in form for run in runs for form in forms)


def tokens_of(stretch: Stretch) -> list[tuple[str, ...]]:
    """Return under which tokens an index may have each word of a stretch, or each pair of neighbours in CJK."""
    if not is_cjk(stretch.words[0].normal):
        return [word.tokens for word in stretch.words]
    return [
        (former.tokens[0] + latter.tokens[0],) if former.tokens and latter.tokens else ()
        for former, latter in zip(stretch.words, stretch.words[1:], strict=False)
    ]


MAX_UNKNOWN_WORDS = 3
"""In a run of spaced words so many may stand in an index as other tokens, as with accents that a model leaves out."""

MAX_MARKS = 7
"""In a run of CJK so many neighbours may be parted in the base, by marks that a model leaves out or moves: a list of
words of two characters has seven."""

_TELLING_WORDS, _TELLING_PAIRS = 3, 2


def needed_of(stretch: Stretch, chunk_counts: Mapping[str, int]) -> set[Needed]:
    """Return what a chunk must have of each run; `chunk_counts` says in how many chunks of a base a token stands.

    The rarest tokens tell most, and only they have to be looked up.
    """
    tokens = tokens_of(stretch)
    in_cjk = is_cjk(stretch.words[0].normal)
    width, may_lack, telling = (
        (stretch.run - 1, MAX_MARKS, MAX_MARKS + _TELLING_PAIRS)
        if in_cjk
        else (stretch.run, MAX_UNKNOWN_WORDS, _TELLING_WORDS)
    )
    needed: set[Needed] = set()
    for run in (tokens[start : start + width] for start in range(len(tokens) - width + 1)):
        known = [found for found in run if found and all(chunk_counts.get(token) for token in found)]
        if len(run) - len(known) > may_lack:
            continue
        rarest = sorted({token for found in known for token in found}, key=lambda token: (chunk_counts[token], token))
        chosen = rarest[:telling]
        lacking = MAX_MARKS - (len(run) - len(known)) if in_cjk else 0
        needed.add(Needed(frozenset(chosen), max(1, len(chosen) - lacking)))
    return needed


def _joined(found: Sequence[str]) -> str:
    return f"{_BLANK}{_BLANK.join(found)}{_BLANK}"
