"""What is asked about bases that a user may use and not read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backend.knowledge.domain.shared_runs import WordSequence


class ProtectedKnowledge(Protocol):
    """Tells whether words are a base's, never what it holds.

    Every method raises Unavailable while the database is away. Retryable.
    """

    async def holds_run(self, base_ids: Sequence[str], sequences: Sequence[WordSequence]) -> bool:
        """Tell whether a chunk of these bases, or the headings above it, holds a run of one of the sequences."""
        ...

    async def bases_of(self, document_ids: Sequence[str]) -> frozenset[str]:
        """Return the bases that these documents are in; one that is gone is in none."""
        ...


class ServedTexts(Protocol):
    """Remembers what restricted searches have brought, and how often a user was refused.

    Every method raises Unavailable while the database is away. Retryable.
    """

    async def newest_served(self, user_id: str, base_ids: Sequence[str]) -> datetime | None:
        """Return the instant of the newest search that has brought a user chunks of these bases, or None."""
        ...

    async def served_texts(self, user_id: str, base_ids: Sequence[str], until: datetime) -> tuple[str, ...]:
        """Return the texts of the chunks of these bases that searches of a user brought from 30 days ago to an instant.

        In whatever conversation: a branch or a new one is no way around what was served before.
        """
        ...

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        """Count an answer that was cut as a refusal: a cut tells that something stands in a base."""
        ...

    async def is_paused(self, user_id: str, base_ids: Sequence[str], now: datetime) -> bool:
        """Say whether too many refusals have paused the user in one of the bases."""
        ...
