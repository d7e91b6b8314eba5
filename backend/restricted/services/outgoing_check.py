"""The judgement on a doubt about outgoing text: whose words are these?"""

from collections.abc import Sequence

from backend.knowledge.ports.knowledge import ProtectedKnowledge
from backend.restricted.domain.canaries import canaries_in
from backend.restricted.domain.outgoing_events import CutCause
from backend.restricted.domain.outgoing_text import Doubt
from backend.restricted.ports.restricted import ServedTexts
from backend.restricted.services.served_figures import ServedFigures
from shared.clock import Clock


class OutgoingCheck:
    """Looks doubts up; `secret` is what canaries are made with."""

    def __init__(self, protected: ProtectedKnowledge, served: ServedTexts, clock: Clock, secret: str) -> None:
        self._protected = protected
        self._served = served
        self._clock = clock
        self._secret = secret

    async def passage_or_canary(self, doubt: Doubt, base_ids: Sequence[str]) -> CutCause | None:
        """Judge all but figures.

        Raises:
            Unavailable: the database is away; what is not judged must not go.
        """
        if canaries_in(self._secret, doubt.text):
            return CutCause.CANARY
        if doubt.sequences and await self._protected.holds_run(base_ids, doubt.sequences):
            return CutCause.PASSAGE
        return None

    def served_figures(self, user_id: str, base_ids: Sequence[str]) -> ServedFigures:
        """Return the figures that restricted searches of a user have brought, to be asked call by call."""
        return ServedFigures(self._served, user_id, base_ids)

    async def is_paused(self, user_id: str, base_ids: Sequence[str]) -> bool:
        """Say whether the user is paused; what is cut then is judged by its form alone, so that a cut tells nothing.

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
        """Tell whether a document is in one of these bases, and in no other."""
        bases = await self._protected.bases_of([document_id])
        return bool(bases) and bases.issubset(base_ids)
