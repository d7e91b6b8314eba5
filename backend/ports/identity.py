"""API keys, the clock, and what an operator watches."""

from datetime import datetime
from typing import Protocol

from backend.domain.identity import ApiKey


class ApiKeyStore(Protocol):
    """Keys by hash. A deleted key is refused from the next request on."""

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        ...

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key, or None."""
        ...

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        ...

    async def delete(self, key_id: str) -> bool:
        """Delete a key; False when there was none."""
        ...


class Clock(Protocol):
    """Wall time."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        ...
