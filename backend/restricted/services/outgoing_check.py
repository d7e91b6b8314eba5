"""The look-ups that decide whether outgoing text holds canaries or passages of restricted bases."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.restricted.domain.canaries import canaries_in
from backend.restricted.domain.outgoing_events import CutCause
from backend.restricted.domain.outgoing_text import PendingCheck, Span
from backend.restricted.ports.restricted import AnswerCuts
from backend.search.ports.index import WordRuns
from shared.clock import Clock


class CutPlace(NamedTuple):
    """Why an answer is cut, and where in the held text what may not be released begins and ends."""

    cause: CutCause
    span: Span


class OutgoingCheck:
    """Carries out pending checks; `secret` is the key of the canaries."""

    def __init__(self, store: KnowledgeStore, words: WordRuns, cuts: AnswerCuts, clock: Clock, secret: str) -> None:
        self._store = store
        self._words = words
        self._cuts = cuts
        self._clock = clock
        self._secret = secret

    async def cut_of(self, pending: PendingCheck, base_ids: Sequence[str]) -> CutPlace | None:
        """Return the cut at the canary or passage that is complete first, or None if the text may be released.

        Raises:
            Unavailable: the database is away; text that is not checked must not be released.
        """
        canary = self._canary(pending)
        run = await self._run(pending, base_ids)
        if canary is not None and (run is None or canary.end <= run.end):
            return CutPlace(CutCause.CANARY, canary)
        return CutPlace(CutCause.PASSAGE, run) if run is not None else None

    async def count_cut(self, user_id: str, base_ids: Sequence[str]) -> None:
        """Count a cut as a refusal of a restricted search.

        Raises:
            Unavailable: the database is away.
        """
        await self._cuts.count_cut(user_id, base_ids, self._clock.now())

    async def is_in(self, document_id: str, base_ids: Sequence[str]) -> bool:
        """Return whether a document, named by its id or its file's, is in one of these bases, and in no other.

        File indexes do not count: what a user uploads for their own use does not tell whose text it is.
        """
        found = {document.knowledge_base_id for document in await self._store.documents_from([document_id])}
        bases = {base_id for base_id in found if not base_id.startswith(FILE_INDEX_ID_START)}
        return bool(bases) and bases.issubset(base_ids)

    def _canary(self, pending: PendingCheck) -> Span | None:
        text = pending.text

        def is_in(start: int, end: int) -> bool:
            return bool(canaries_in(self._secret, text[start:end]))

        if not is_in(0, len(text)):
            return None
        end = _least(len(text), lambda count: is_in(0, count))
        start = end - _least(end, lambda count: is_in(end - count, end))
        return Span(start - pending.offset, end - 1 - pending.offset)

    async def _run(self, pending: PendingCheck, base_ids: Sequence[str]) -> Span | None:
        """Return the place of the run that a base holds and that ends first; most texts take a single look-up."""
        if not pending.sequences or not await self._words.holds_run(base_ids, pending.sequences):
            return None
        low, high = 0, len(pending.runs) - 1
        while low < high:
            middle = (low + high) // 2
            some = [one.sequence for one in pending.runs[low : middle + 1]]
            low, high = (low, middle) if await self._words.holds_run(base_ids, some) else (middle + 1, high)
        return pending.runs[low].span


def _least(most: int, is_enough: Callable[[int], bool]) -> int:
    """Return the least count that is enough; `most` is enough, and so is every count above one that is."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low
