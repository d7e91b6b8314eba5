"""The outgoing scan of texts that are whole, and no stream: the same rules as for what a restricted turn says."""

import asyncio
from collections.abc import Sequence

from backend.restricted.domain.figure_marks import mark_figures
from backend.restricted.domain.outgoing_text import OwnWords, PendingCheck, StreamFilterBuffer
from backend.restricted.services.outgoing_check import OutgoingCheck


class OutgoingTexts:
    """Checks texts for canaries and passages of restricted bases, and replaces their figures."""

    def __init__(self, check: OutgoingCheck) -> None:
        self._check = check

    async def passed(
        self, texts: Sequence[str], *, user_id: str, user_words: str, base_ids: Sequence[str]
    ) -> tuple[str, ...] | None:
        """Return the texts with their figures replaced, but for those that the user wrote; None where one is cut.

        The texts are also read in one go, so that no passage is spread over several. A cut counts as a refusal.

        Raises:
            Unavailable: the database is away, so that text cannot be checked.
        """
        # In a thread: a long query has many words.
        pending, shown = await asyncio.to_thread(_prepare, texts, user_words)
        if pending is not None and await self._check.cut_of(pending, base_ids) is not None:
            await self._check.count_cut(user_id, base_ids)
            return None
        return shown


def _prepare(texts: Sequence[str], user_words: str) -> tuple[PendingCheck | None, tuple[str, ...]]:
    own = OwnWords(user_words)
    held = StreamFilterBuffer(own)
    held.add("\n".join(texts))
    return held.pending_check(at_end=True), tuple(mark_figures(text, own.figures) for text in texts)
