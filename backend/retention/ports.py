"""The ports of retention."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from backend.retention.domain import DuePage, Kept


class ExpiryStore(Protocol):
    """Finds what nobody has touched since an instant, and deletes it in short transactions.

    Raises (every call):
        Unavailable: the database is away. Retryable.
    """

    async def due(self, kind: Kept, before: datetime, after: str) -> DuePage:
        """Look at a bounded number of things with ids behind `after`."""
        ...

    async def delete(self, kind: Kept, ids: Sequence[str], before: datetime) -> int:
        """Delete those of the named things that still are due; return how many were deleted.

        A process that is killed meanwhile leaves what `due` finds again.
        """
        ...


class RetentionObserver(Protocol):
    """Is told of sweeps."""

    def swept(self, deleted: Mapping[Kept, int]) -> None:
        """Note how many things of each kind a sweep has deleted."""
        ...
