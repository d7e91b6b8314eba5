"""An in-memory `ClaimStore`, and the taking of keys that the other in-memory stores share."""

from datetime import datetime

from backend.foundation.domain.idempotency import KeyClaim
from shared.errors import KeyHeld
from tests.fakes.store_state import StoreState


def take_key(claims: dict[str, KeyClaim], claim: KeyClaim | None) -> None:
    """Keep a claim, or refuse one whose key is taken; it comes behind all checks, because nothing is rolled back."""
    if claim is None:
        return
    taken = claims.get(claim.id)
    if taken is not None and taken.claimed_at >= claim.expired_before:
        raise KeyHeld("Another request with this Idempotency-Key is being answered.", retry_after_seconds=1)
    claims[claim.id] = claim


class FakeClaimStore:
    """Finds claims in a `StoreState`."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def find(self, claim_id: str) -> KeyClaim | None:
        """Return a claim, or None."""
        return self._state.claims.get(claim_id)

    async def forget(self, before: datetime, most: int) -> int:
        """Forget the oldest claims from before an instant."""
        old = sorted((claim for claim in self._state.claims.values() if claim.claimed_at < before), key=_age)[:most]
        for claim in old:
            del self._state.claims[claim.id]
        return len(old)


def _age(claim: KeyClaim) -> datetime:
    return claim.claimed_at
