"""The look-ups that decide whether outgoing text holds canaries, passages or figures of restricted bases."""

from collections.abc import Sequence

from backend.knowledge.ports.knowledge import ProtectedKnowledge
from backend.restricted.domain.canaries import canaries_in
from backend.restricted.domain.outgoing_events import CutCause
from backend.restricted.domain.outgoing_text import PendingCheck
from backend.restricted.ports.restricted import ServedTexts
from backend.restricted.services.served_figures import ServedFigures
from shared.clock import Clock


class OutgoingCheck:
    """Carries out pending checks; `secret` is the key of the canaries."""

    def __init__(self, protected: ProtectedKnowledge, served: ServedTexts, clock: Clock, secret: str) -> None:
        self._protected = protected
        self._served = served
        self._clock = clock
        self._secret = secret

    async def passage_or_canary(self, pending: PendingCheck, base_ids: Sequence[str]) -> CutCause | None:
        """Return why the text must be cut, figures left aside; None if it may be released.

        Raises:
            Unavailable: the database is away; text that is not checked must not be released.
        """
        if canaries_in(self._secret, pending.text):
            return CutCause.CANARY
        if pending.sequences and await self._protected.holds_run(base_ids, pending.sequences):
            return CutCause.PASSAGE
        return None

    def served_figures(self, user_id: str, base_ids: Sequence[str]) -> ServedFigures:
        """Return the figures that a user's restricted searches have served, as they stand before each model call."""
        return ServedFigures(self._served, user_id, base_ids)

    async def is_paused(self, user_id: str, base_ids: Sequence[str]) -> bool:
        """Return whether the user is paused: every telling figure is then cut, so that a cut reveals nothing.

        Raises:
            Unavailable: the database is away.
        """
        return await self._served.is_paused(user_id, base_ids, self._clock.now())

    async def count_cut(self, user_id: str, base_ids: Sequence[str]) -> None:
        """Count a cut as a refusal of a restricted search.

        Raises:
            Unavailable: the database is away.
        """
        await self._served.count_cut(user_id, base_ids, self._clock.now())

    async def is_in(self, document_id: str, base_ids: Sequence[str]) -> bool:
        """Return whether a document is in one of these bases, and in no other."""
        bases = await self._protected.bases_of([document_id])
        return bool(bases) and bases.issubset(base_ids)
