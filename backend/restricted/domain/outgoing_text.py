"""Outgoing text of a restricted turn, held back until it has been checked for text of restricted bases.

A check covers every run of words and every figure that begins in the part to be released next; the part that stays
held is longer than the longest run or figure that is searched for.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backend.knowledge.domain.shared_runs import (
    MODEL_TEXT_RUNS,
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
"""Text without words to count, such as a picture in base64, would otherwise be held for ever."""

MAX_OWN_CHARACTERS = 20_000
"""How much of the user's newest text is compared; more would make each turn of a long conversation slower."""

_MAX_FRAGMENT_CHARACTERS = 64
_RECENT_CHARACTERS = 200
"""How much released text is searched again for canaries, which may be spelled letter by letter."""


class OwnWords:
    """The runs and figures of the user's own text; the scan lets them pass, as they reveal nothing of a base."""

    def __init__(self, texts: Sequence[str]) -> None:
        newest = "\n".join(texts)[-MAX_OWN_CHARACTERS:]
        both = spaced_and_cjk(words(newest))
        self.runs = tuple(RunIndex.of(run, [found]) for found, run in zip(both, MODEL_TEXT_RUNS, strict=True))
        self.figures = FigureSet(frozenset(figures(newest)))


class PendingCheck(NamedTuple):
    """What must be checked before text is released: `text` for canaries, all else by look-ups in the database."""

    sequences: tuple[WordSequence, ...]
    figures: frozenset[Figure]
    text: str


class _Placed(NamedTuple):
    """A word and the offset of its segment in the held text; `_RELEASED` once the word has been released."""

    word: Word
    start: int


_RELEASED = -1


class HeldText:
    """One streamed text: `add` to it, carry out its `pending_check`, then `take` what may be released."""

    def __init__(self, own: OwnWords) -> None:
        self._own = own
        self._held = ""
        self._fragment = ""
        self._recent = ""
        self._open: tuple[list[_Placed], ...] = ([], [])
        self._segments: list[Segment] = []
        self._whole_count = 0

    def __bool__(self) -> bool:
        """Return whether any text is held."""
        return bool(self._held)

    def add(self, text: str) -> None:
        """Append text."""
        self._held += text

    def pending_check(self, *, at_end: bool) -> PendingCheck | None:
        """Return the check of all held text at the end; before that None until enough text is held."""
        if not self._held or (not at_end and len(self._held) < HELD_CJK):
            return None
        self._read(at_end=at_end)
        if not at_end and not any(self._is_full(kind) for kind in (0, 1)) and not self._is_too_much:
            return None
        return self._pending_check(at_end=at_end)

    def take(self, *, at_end: bool, is_word_over: bool = True) -> int:
        """Release the text that `pending_check` covered; return how many of the held characters that is.

        If the last released word may continue, its beginning is remembered for the next check.
        """
        end = len(self._text) if at_end or self._is_too_much else self._next_end()
        fragment = "" if at_end and is_word_over else self._fragment_before(end)
        settled = len(self._text) if not fragment else self._segments[-1].start
        self._open = tuple(
            _unchecked_tail([word for word in found if word.start < settled], run, end)
            for found, run in zip(self._open, MODEL_TEXT_RUNS, strict=True)
        )
        count = end - len(self._fragment)
        self._recent = (self._recent + self._held[:count])[-_RECENT_CHARACTERS:]
        self._held, self._fragment, self._segments = self._held[count:], fragment, []
        return count

    def _fragment_before(self, end: int) -> str:
        """Return the beginning of a word that may continue beyond this offset, or ""."""
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
        """Split the held text into words; a last word that may continue is left for later."""
        text = self._text
        segments = self._segments = list(segments_of(text))
        goes_on = not at_end and bool(segments) and not segments[-1].is_cjk and segments[-1].end == len(text)
        self._whole_count = len(segments) - goes_on
        placed = [
            _Placed(word, segment.start) for segment in segments[: self._whole_count] for word in words_of(segment)
        ]
        before = [[word for word in found if word.start == _RELEASED] for found in self._open]
        self._open = (
            before[0] + [one for one in placed if not is_cjk(one.word.normal)],
            before[1] + [one for one in placed if is_cjk(one.word.normal)],
        )

    def _is_full(self, kind: int) -> bool:
        return sum(word.start != _RELEASED for word in self._open[kind]) >= _HELD_COUNTS[kind]

    def _pending_check(self, *, at_end: bool) -> PendingCheck:
        sequences = [
            sequence
            for found, run, own in zip(self._open, MODEL_TEXT_RUNS, self._own.runs, strict=True)
            for sequence in foreign_sequences([one.word for one in found], run, own)
        ]
        readable = self._text if at_end else self._text[: self._figures_end()]
        stated = telling_figures(readable)
        foreign = frozenset(figure for figure in stated if not self._own.figures.holds(figure))
        return PendingCheck(tuple(sequences), foreign, self._recent + self._held)

    def _next_end(self) -> int:
        """Return the offset up to which every run has been checked, moved back to where it splits no figure."""
        ends = [
            found[len(found) - run + 1].start
            for kind, (found, run) in enumerate(zip(self._open, MODEL_TEXT_RUNS, strict=True))
            if self._is_full(kind)
        ]
        last = sum(segment.start <= min(ends) for segment in self._segments) - 1
        return max(len(self._fragment), self._segments[self._split_index(last)].start)

    def _figures_end(self) -> int:
        """Return the last offset at which whole segments can be split without splitting a figure."""
        index = self._split_index(self._whole_count - 1)
        return self._segments[index].start if index > 0 else 0

    def _split_index(self, last: int) -> int:
        """Return the last segment, up to `last`, that continues no figure; one has `MAX_PIECES` segments at most."""
        first = max(0, last - MAX_PIECES)
        return next((index for index in range(last, first, -1) if self._begins_anew(index)), first)

    def _begins_anew(self, index: int) -> bool:
        """Return whether no figure spans this segment and the one before it."""
        before, behind = self._segments[index - 1], self._segments[index]
        together = self._text[before.start : behind.end]
        return figures(together) == [*figures(before.text), *figures(behind.text)]


def _unchecked_tail(found: Sequence[_Placed], run: int, end: int) -> list[_Placed]:
    """Return the words before `end` at which a run may begin that is not yet complete, marked as released."""
    first = max(0, len(found) - run + 1)
    return [_Placed(word.word, _RELEASED) for word in found[first:] if word.start < end]
