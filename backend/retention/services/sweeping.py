"""Deleting what nobody has touched for too long."""

import asyncio
from datetime import timedelta

from backend.conversations.ports.conversations import ConversationStore
from backend.retention.domain import Kept, RetentionTerms
from backend.retention.ports import ExpiryStore, RetentionObserver
from shared.clock import Clock

SWEEP_SECONDS = 3600.0
"""The pause between two sweeps."""

PAUSE_SECONDS = 0.01
"""Between two steps, so that other writers come first."""


class Retention:
    """Sweeps through all that is kept; several replicas may do so side by side, for each step checks what is due."""

    def __init__(
        self,
        store: ExpiryStore,
        conversations: ConversationStore,
        terms: RetentionTerms,
        clock: Clock,
        observer: RetentionObserver,
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._terms = terms
        self._clock = clock
        self._observer = observer

    async def sweep(self) -> None:
        """Delete all that is due; a process that ends meanwhile leaves the rest to the next sweep.

        What is left of conversations that were deleted is due whatever the terms. Conversations come before responses,
        which go when their conversation is gone.

        Raises:
            Unavailable: the database is away; what was deleted by then stays deleted.
        """
        for each in await self._conversations.find_left_of_deleted():
            await self._conversations.clear(each)
        terms = {kind: kept_for for kind in Kept if (kept_for := self._terms.of(kind)) is not None}
        if terms:
            self._observer.swept({kind: await self._swept(kind, kept_for) for kind, kept_for in terms.items()})

    async def _swept(self, kind: Kept, kept_for: timedelta) -> int:
        before, deleted, after = self._clock.now() - kept_for, 0, ""
        while (page := await self._store.due(kind, before, after)).last is not None:
            if page.due:
                deleted += await self._store.delete(kind, page.due, before)
            after = page.last
            await asyncio.sleep(PAUSE_SECONDS)
        return deleted
