"""What is asked about bases that a user may use and not read."""

from collections.abc import Sequence
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
