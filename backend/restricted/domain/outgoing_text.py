"""Outgoing text of a restricted turn, held back until it has been checked for text of restricted bases.

A check covers every run of words that begins in the part to be released next. Figures are replaced by marks before
anything is released. What is released before a cut is decided by the text alone: it is the same in whichever pieces
the text arrives.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from backend.restricted.domain.canaries import possible_beginning
from backend.restricted.domain.figure_marks import FigureMarks, OwnFigures
from backend.search.domain.shared_runs import (
    MODEL_TEXT_RUNS,
    Segment,
    Word,
    WordSequence,
    blind_words,
    foreign_sequences,
    foreign_starts,
    segments_of,
    words_of,
)
from shared.plain_text.normal_form import is_cjk
from shared.plain_text.runs import RunIndex

HELD_WORDS, HELD_CJK = 16, 24
_HELD_COUNTS = (HELD_WORDS, HELD_CJK)

MAX_HELD_CHARACTERS = 2_000
"""Text without words to count, such as a picture in base64, would otherwise be held for ever."""

_LEAST_STEP = 11
"""How many characters are released at least, so that few checks look up the same words again."""

_MAX_FRAGMENT_CHARACTERS = 64
_RECENT_CHARACTERS = 200
"""How much released text is searched again for canaries, which may be spelled letter by letter."""


class OwnWords:
    """The runs and figures of the user's own words; the scan lets them pass, as they reveal nothing of a base."""

    def __init__(self, user_words: str, *, keeps_citations: bool = False) -> None:
        both = blind_words(user_words)
        self.runs = tuple(RunIndex.of(run, [found]) for found, run in zip(both, MODEL_TEXT_RUNS, strict=True))
        self.figures = OwnFigures(user_words, keeps_citations=keeps_citations)


class Span(NamedTuple):
    """A part of the held text; `end` is where its last word, or its last letter, begins."""

    start: int
    end: int


class PlacedRun(NamedTuple):
    """A run of words, and its place; figures before its first other word are no part of it."""

    span: Span
    sequence: WordSequence


class PendingCheck(NamedTuple):
    """What must be checked before text is released: `text` for canaries, `sequences` by look-ups in the database.

    `runs` are all runs of the sequences, in the order in which they end; the held text has its offset 0 at
    `text[offset]`.
    """

    sequences: tuple[WordSequence, ...]
    runs: tuple[PlacedRun, ...]
    text: str
    offset: int


class _Placed(NamedTuple):
    """A word, and where its segment is in the held text; `_RELEASED` once the word has been released."""

    word: Word
    start: int
    end: int


_RELEASED = -1


class StreamFilterBuffer:
    """One streamed text: `add` to it, do what `build_pending_check` returns, then `take` what may be released."""

    def __init__(self, own: OwnWords) -> None:
        self._own = own
        self._held = ""
        self._shown: list[str] = []
        self._marks = FigureMarks(own.figures)
        self._fragment = ""
        self._recent = ""
        self._open: tuple[list[_Placed], ...] = ([], [])
        self._placed: tuple[list[_Placed], ...] = ([], [])
        self._segments: list[Segment] = []
        self._whole_end = 0

    def __bool__(self) -> bool:
        """Return whether any text is held."""
        return bool(self._held)

    def add(self, text: str) -> None:
        """Append text."""
        self._held += text
        self._marks.add(text)
        self._shown += self._marks.take_settled()

    def build_pending_check(self, *, at_end: bool) -> PendingCheck | None:
        """Return the check of all held text at the end; before that None until enough text is held."""
        if not self._held or (not at_end and len(self._held) < HELD_CJK):
            return None
        self._read(at_end=at_end)
        if not at_end and (not self._is_enough or self._next_end() < len(self._fragment) + _LEAST_STEP):
            return None
        return self._build_pending_check()

    def take(self, *, at_end: bool, is_word_over: bool = True) -> list[str]:
        """Release the text that `build_pending_check` covered: for each of its characters what is shown in its place.

        If the last released word may continue, its beginning is remembered for the next check.
        """
        if at_end:
            self._shown += self._marks.finish(goes_on=not is_word_over)
        end = len(self._text) if at_end else self._next_end()
        fragment = "" if at_end and is_word_over else self._fragment_before(end)
        settled = len(self._text) if not fragment else self._segments[-1].start
        self._open = tuple(
            _find_unchecked_tail([word for word in found if word.start < settled], run, end)
            for found, run in zip(self._open, MODEL_TEXT_RUNS, strict=True)
        )
        shown = self._release(end - len(self._fragment))
        self._fragment, self._segments = fragment, []
        return shown

    def take_before(self, cut: Span) -> list[str]:
        """Release the text before a cut; the rest is never released."""
        count = min(max(cut.start, self._far_behind(cut.end)) - len(self._fragment), len(self._shown))
        return self._release(max(0, count))

    def _release(self, count: int) -> list[str]:
        shown = self._shown[:count]
        self._recent = (self._recent + self._held[:count])[-_RECENT_CHARACTERS:]
        self._held, self._shown = self._held[count:], self._shown[count:]
        return shown

    def _fragment_before(self, end: int) -> str:
        """Return the beginning of a word that may continue beyond this offset, or ""."""
        last = self._segments[-1] if self._segments else None
        if last is None or last.is_cjk or not last.start < end <= last.end:
            return ""
        return self._text[last.start : end][-_MAX_FRAGMENT_CHARACTERS:]

    @property
    def _text(self) -> str:
        return self._fragment + self._held

    @property
    def _is_enough(self) -> bool:
        is_full = any(len(placed) >= count for placed, count in zip(self._placed, _HELD_COUNTS, strict=True))
        return is_full or len(self._held) > MAX_HELD_CHARACTERS

    def _read(self, *, at_end: bool) -> None:
        """Split the held text into words; a last word that may continue is left for later."""
        text = self._text
        segments = self._segments = list(segments_of(text))
        goes_on = not at_end and bool(segments) and not segments[-1].is_cjk and segments[-1].end == len(text)
        self._whole_end = segments[-1].start if goes_on else len(text)
        self._placed = ([], [])
        for segment in segments[: len(segments) - goes_on]:
            for word in words_of(segment):
                self._placed[is_cjk(word.normal)].append(_Placed(word, segment.start, segment.end))
        self._open = tuple(
            _without_rows_of_figures([*(word for word in found if word.start == _RELEASED), *placed])
            for found, placed in zip(self._open, self._placed, strict=True)
        )

    def _build_pending_check(self) -> PendingCheck:
        kinds = list(zip(self._open, MODEL_TEXT_RUNS, self._own.runs, strict=True))
        sequences = [
            sequence
            for found, run, own in kinds
            for sequence in foreign_sequences([one.word for one in found], run, own)
        ]
        runs = [
            _join_run(found[start : start + run])
            for found, run, own in kinds
            for start in foreign_starts([one.word for one in found], run, own)
        ]
        runs.sort(key=lambda one: one.span.end)
        offset = len(self._recent) - len(self._fragment)
        return PendingCheck(tuple(sequences), tuple(runs), self._recent + self._held, offset)

    def _next_end(self) -> int:
        """Return the offset up to which text may be released.

        Text in which a run or a canary may have begun waits, but not for longer than `_far_behind` says.
        """
        kept = [_first_kept(found, run) for found, run in zip(self._open, MODEL_TEXT_RUNS, strict=True)]
        begun = min([self._whole_end, possible_beginning(self._text), *(start for start in kept if start is not None)])
        end = min(max(begun, self._far_behind(len(self._text))), len(self._fragment) + len(self._shown))
        before = [segment for segment in self._segments if segment.start <= end]
        if not before or before[-1] is self._segments[-1]:
            return max(end, len(self._fragment))
        return max(before[-1].start, len(self._fragment))

    def _far_behind(self, end: int) -> int:
        """Return the offset behind which so much stands before `end` that text need not wait any longer."""
        starts = [[word.start for word in placed if word.end <= end] for placed in self._placed]
        far = [found[-count] for found, count in zip(starts, _HELD_COUNTS, strict=True) if len(found) >= count]
        return max([0, end - MAX_HELD_CHARACTERS, *far])


def _without_rows_of_figures(found: Iterable[_Placed]) -> list[_Placed]:
    """Return the words with neighbouring figures as a single one."""
    kept: list[_Placed] = []
    for placed in found:
        if not (placed.word.is_figure and kept and kept[-1].word.is_figure):
            kept.append(placed)
    return kept


def _join_run(found: Sequence[_Placed]) -> PlacedRun:
    first = found[found[0].word.is_figure]
    return PlacedRun(Span(first.start, found[-1].start), WordSequence(tuple(one.word for one in found), len(found)))


def _first_kept(found: Sequence[_Placed], run: int) -> int | None:
    """Return where the first run begins that is not complete yet, or None; a figure at its beginning need not wait."""
    tail = found[max(0, len(found) - run + 1) :]
    tail = tail[1:] if tail and tail[0].word.is_figure else tail
    return next((word.start for word in tail if word.start != _RELEASED), None)


def _find_unchecked_tail(found: Sequence[_Placed], run: int, end: int) -> list[_Placed]:
    """Return the words before `end` at which a run may begin that is not yet complete, marked as released."""
    first = max(0, len(found) - run + 1)
    return [_Placed(placed.word, _RELEASED, _RELEASED) for placed in found[first:] if placed.start < end]
