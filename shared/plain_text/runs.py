"""Find the runs of consecutive words that two texts share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]
"""The first position and the position after the last, counted in words."""


def runs_of(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Yield every run of that many words, in order; none when there are fewer words."""
    return zip(*(words[offset:] for offset in range(length)), strict=False)


@dataclass
class RunIndex:
    """All runs of one length of the texts that were added."""

    length: int
    _runs: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]], init=False, repr=False)

    @classmethod
    def of(cls, length: int, texts: Iterable[Sequence[str]]) -> "RunIndex":
        """Build an index of several texts, each a sequence of words; no run goes from one text into the next."""
        index = cls(length)
        for text in texts:
            index.add(text)
        return index

    def add(self, words: Sequence[str]) -> None:
        """Add the runs of a text."""
        self._runs.update(runs_of(words, self.length))

    def holds(self, run: tuple[str, ...]) -> bool:
        """Tell whether a run of exactly the index's length was added."""
        return run in self._runs

    def find_shared(self, words: Sequence[str]) -> list[Span]:
        """Return the spans that runs of the index cover, in order; runs that overlap make one span."""
        spans: list[Span] = []
        for start, run in enumerate(runs_of(words, self.length)):
            if run not in self._runs:
                continue
            end = start + self.length
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return spans


def foreign_length(span: Span, own: Iterable[Span]) -> int:
    """Count the words of a span that lie in none of the writer's own spans (which do not overlap)."""
    start, end = span
    return end - start - sum(max(0, min(end, stop) - max(start, begin)) for begin, stop in own)


def longest_foreign_run(words: Sequence[str], theirs: RunIndex, own: RunIndex) -> int:
    """Return the number of words in the longest shared run, without the words that the user wrote.

    `own` indexes the user's own words; shorter runs than its length do not count as these.
    """
    mine = own.find_shared(words)
    return max((foreign_length(span, mine) for span in theirs.find_shared(words)), default=0)
