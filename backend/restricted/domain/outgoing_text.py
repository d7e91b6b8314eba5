"""Text on its way out of a restricted turn, held back until it is known whose words it is made of.

What is asked about a text concerns all that begins in the part which may go next; what stays behind it is long
enough for the longest thing that is looked for.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backend.knowledge.domain.shared_runs import (
    SAID,
    Segment,
    Word,
    WordSequence,
    foreign_sequences,
    segments_of,
    words_of,
)
from shared.plain_text.figures import MAX_PIECES, Figure, FigureSet, figures, telling_figures
from shared.plain_text.normal_form import is_cjk, spaced_and_cjk, words
from shared.plain_text.runs import RunIndex

HELD_WORDS, HELD_CJK = 16, 24
_HELD_COUNTS = (HELD_WORDS, HELD_CJK)

MAX_HELD_CHARACTERS = 2_000
"""What has no words to count, such as a picture in base64, is not held for ever."""

MAX_OWN_CHARACTERS = 20_000
"""The user's own words, the newest of them; more would make each turn of a long conversation slower."""

_MAX_FRAGMENT_CHARACTERS = 64
_RECENT_CHARACTERS = 200
"""What is looked at again for canaries, which may be spelled letter by letter."""


class OwnWords:
    """What the user has written himself: nothing of it is a secret of a base."""

    def __init__(self, texts: Sequence[str]) -> None:
        newest = "\n".join(texts)[-MAX_OWN_CHARACTERS:]
        both = spaced_and_cjk(words(newest))
        self.runs = tuple(RunIndex.of(run, [found]) for found, run in zip(both, SAID, strict=True))
        self.figures = FigureSet(frozenset(figures(newest)))


class Doubt(NamedTuple):
    """What is to be looked up before a text may go; `text` is for what needs no looking up."""

    sequences: tuple[WordSequence, ...]
    figures: frozenset[Figure]
    text: str


class _Placed(NamedTuple):
    """A word and where its segment begins; -1 once it has gone."""

    word: Word
    start: int


_GONE = -1


class HeldText:
    """One text in the order in which it is said. Add, ask for its doubt, and take what may go once that is settled."""

    def __init__(self, own: OwnWords) -> None:
        self._own = own
        self._held = ""
        self._fragment = ""
        self._recent = ""
        self._open: tuple[list[_Placed], ...] = ([], [])
        self._segments: list[Segment] = []
        self._whole_count = 0

    def __bool__(self) -> bool:
        """Whether anything is held."""
        return bool(self._held)

    def add(self, text: str) -> None:
        """Hold more."""
        self._held += text

    def doubt(self, *, at_end: bool) -> Doubt | None:
        """Return what is to be looked up now: of all at the end, before it once enough is held."""
        if not self._held or (not at_end and len(self._held) < HELD_CJK):
            return None
        self._read(at_end=at_end)
        if not at_end and not any(self._is_full(kind) for kind in (0, 1)) and not self._is_too_much:
            return None
        return self._doubt(at_end=at_end)

    def take(self, *, at_end: bool, is_word_over: bool = True) -> int:
        """Let go what the doubt was about; return how many characters of what is held that is.

        At an end where the word may go on, its beginning is remembered.
        """
        end = len(self._text) if at_end or self._is_too_much else self._next_end()
        fragment = "" if at_end and is_word_over else self._fragment_before(end)
        settled = len(self._text) if not fragment else self._segments[-1].start
        self._open = tuple(
            _not_asked([word for word in found if word.start < settled], run, end)
            for found, run in zip(self._open, SAID, strict=True)
        )
        count = end - len(self._fragment)
        self._recent = (self._recent + self._held[:count])[-_RECENT_CHARACTERS:]
        self._held, self._fragment, self._segments = self._held[count:], fragment, []
        return count

    def _fragment_before(self, end: int) -> str:
        """Return the beginning of a word that goes on behind this place; "" where none does."""
        last = self._segments[-1] if self._segments else None
        if last is None or last.is_cjk or not last.start < end <= last.end:
            return ""
        return last.text[-_MAX_FRAGMENT_CHARACTERS:]

    @property
    def _text(self) -> str:
        return self._fragment + self._held

    @property
    def _is_too_much(self) -> bool:
        return len(self._held) > MAX_HELD_CHARACTERS

    def _read(self, *, at_end: bool) -> None:
        """Find the words; one that may go on is left for later."""
        text = self._text
        segments = self._segments = list(segments_of(text))
        goes_on = not at_end and bool(segments) and not segments[-1].is_cjk and segments[-1].end == len(text)
        self._whole_count = len(segments) - goes_on
        placed = [
            _Placed(word, segment.start) for segment in segments[: self._whole_count] for word in words_of(segment)
        ]
        before = [[word for word in found if word.start == _GONE] for found in self._open]
        self._open = (
            before[0] + [one for one in placed if not is_cjk(one.word.normal)],
            before[1] + [one for one in placed if is_cjk(one.word.normal)],
        )

    def _is_full(self, kind: int) -> bool:
        return sum(word.start != _GONE for word in self._open[kind]) >= _HELD_COUNTS[kind]

    def _doubt(self, *, at_end: bool) -> Doubt:
        sequences = [
            sequence
            for found, run, own in zip(self._open, SAID, self._own.runs, strict=True)
            for sequence in foreign_sequences([one.word for one in found], run, own)
        ]
        readable = self._text if at_end else self._text[: self._figures_end()]
        told = telling_figures(readable)
        unknown = frozenset(figure for figure in told if not self._own.figures.holds(figure))
        return Doubt(tuple(sequences), unknown, self._recent + self._held)

    def _next_end(self) -> int:
        """Return where what begins after it has yet to be judged, in the middle of no figure."""
        ends = [
            found[len(found) - run + 1].start
            for kind, (found, run) in enumerate(zip(self._open, SAID, strict=True))
            if self._is_full(kind)
        ]
        last = sum(segment.start <= min(ends) for segment in self._segments) - 1
        return max(len(self._fragment), self._segments[self._parting_place(last)].start)

    def _figures_end(self) -> int:
        """Return the last place behind which no figure goes on."""
        place = self._parting_place(self._whole_count - 1)
        return self._segments[place].start if place > 0 else 0

    def _parting_place(self, last: int) -> int:
        """Return the last place, no further than `last`, in no figure; where none is near, the row is none."""
        first = max(0, last - MAX_PIECES)
        return next((place for place in range(last, first, -1) if self._parts_figures(place)), first)

    def _parts_figures(self, place: int) -> bool:
        """Whether no figure goes from the segment before this place into the one at it."""
        before, behind = self._segments[place - 1], self._segments[place]
        together = self._text[before.start : behind.end]
        return figures(together) == [*figures(before.text), *figures(behind.text)]


def _not_asked(found: Sequence[_Placed], run: int, end: int) -> list[_Placed]:
    """Return the words before a place from which no whole run has been asked about."""
    first = max(0, len(found) - run + 1)
    return [_Placed(word.word, _GONE) for word in found[first:] if word.start < end]
