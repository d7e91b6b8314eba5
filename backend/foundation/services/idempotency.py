"""Answering a request that was sent again under the same key without doing its work twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from backend.foundation.domain.idempotency import KEPT_FOR, KeyClaim, KeyedRequest, claim_cooperatively, claim_id_of
from backend.foundation.ports.readiness import ClaimStore
from backend.foundation.services.steps import run_cooperatively
from shared.clock import Clock
from shared.errors import BallastError, KeyReused

KEY_HEADER = "Idempotency-Key"

FORGET_KEYS_SECONDS = 60.0
FORGOTTEN_AT_ONCE = 500
PAUSE_SECONDS = 0.05
"""Between two deletions, so that other writers come first."""

Created = TypeVar("Created")
Repeated = TypeVar("Repeated")


class OncePerKey:
    """Does the work of each key once, and forgets keys after a day.

    `secret` keys the hashes under which keys and requests are stored.
    """

    def __init__(self, store: ClaimStore, clock: Clock, secret: str) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret

    async def __call__(
        self,
        request: KeyedRequest | None,
        create: Callable[[KeyClaim | None], Awaitable[Created]],
        again: Callable[[str], Awaitable[Repeated]],
    ) -> Created | Repeated:
        """Return what `create` returns, or, where the key has been used, what `again` makes of what was created then.

        `create` stores the claim together with what it creates, or raises and stores neither. Without a key there is
        no claim.

        Raises:
            KeyReused: the key was used with another request.
            BallastError: whatever `create` or `again` raises.
        """
        if request is None:
            return await create(None)
        claim = await run_cooperatively(claim_cooperatively(request, self._secret, self._clock.now()))
        created = await self._find_created(claim)
        if created is None:
            try:
                return await create(claim)
            except BallastError:
                # The same request, sent at the same time, may have come first and be the reason of the failure.
                created = await self._find_created(claim)
                if created is None:
                    raise
        return await again(created)

    async def has_answer(self, principal: tuple[str, str], key: str) -> bool:
        """Whether a request with this key was answered; whether it is the same one, its body alone tells."""
        found = await self._store.find(claim_id_of(principal, key, self._secret))
        return found is not None and found.claimed_at >= self._clock.now() - KEPT_FOR

    async def forget(self) -> None:
        """Delete all expired keys in small steps.

        Raises:
            Unavailable: the database is away.
        """
        forgotten = FORGOTTEN_AT_ONCE
        while forgotten == FORGOTTEN_AT_ONCE:
            forgotten = await self._store.forget(self._clock.now() - KEPT_FOR, FORGOTTEN_AT_ONCE)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _find_created(self, claim: KeyClaim) -> str | None:
        found = await self._store.find(claim.id)
        if found is None or found.claimed_at < claim.expired_before:
            return None
        if found.fingerprint != claim.fingerprint:
            raise KeyReused(f"This {KEY_HEADER} was used with another request; take a new one.", param=KEY_HEADER)
        return found.created
