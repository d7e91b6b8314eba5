"""The judgement on a doubt about outgoing text: whose words are these?"""

import asyncio
from collections.abc import Sequence

from backend.domain.canaries import canaries_in
from backend.domain.outgoing_events import CutCause
from backend.domain.outgoing_text import Doubt
from backend.ports.protected import ProtectedKnowledge, ServedTexts
from shared.plain_text.figures import Figure, telling_figures


class OutgoingCheck:
    """Looks doubts up; `secret` is what canaries are made with."""

    def __init__(self, protected: ProtectedKnowledge, served: ServedTexts, secret: str) -> None:
        self._protected = protected
        self._served = served
        self._secret = secret

    async def passage_or_canary(self, doubt: Doubt, base_ids: Sequence[str]) -> CutCause | None:
        """Judge all but figures.

        Raises:
            Unavailable: the database is away; what is not judged must not go.
        """
        if canaries_in(self._secret, doubt.text):
            return CutCause.CANARY
        if doubt.stretches and await self._protected.holds_run(base_ids, doubt.stretches):
            return CutCause.PASSAGE
        return None

    async def served_figures(self, conversation_id: str) -> frozenset[Figure]:
        """Return the figures that restricted searches of a conversation have brought so far.

        Raises:
            Unavailable: the database is away.
        """
        texts = await self._served.served_texts(conversation_id)
        return await asyncio.to_thread(_telling_figures, texts)

    async def is_in(self, document_id: str, base_ids: Sequence[str]) -> bool:
        """Tell whether a document is in one of these bases, and in no other."""
        bases = await self._protected.bases_of([document_id])
        return bool(bases) and bases.issubset(base_ids)


def _telling_figures(texts: Sequence[str]) -> frozenset[Figure]:
    return frozenset[Figure]().union(*map(telling_figures, texts))
