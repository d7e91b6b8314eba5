"""The port for reading and forgetting the claims of idempotency keys.

A claim is stored by whoever stores what its request creates, in the same transaction.
"""

from datetime import datetime
from typing import Protocol

from backend.foundation.domain.idempotency import KeyClaim


class ClaimStore(Protocol):
    """Finds claims by their ids."""

    async def find(self, claim_id: str) -> KeyClaim | None:
        """Return a stored claim, an expired one too, or None."""
        ...

    async def forget(self, before: datetime, most: int) -> int:
        """Delete up to `most` claims from before an instant; return how many it were."""
        ...
