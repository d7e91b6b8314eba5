"""The port for storing API keys."""

from typing import Protocol

from backend.identity.domain import ApiKey


class ApiKeyStore(Protocol):
    """Stores API keys, which are found by their hashes; a deleted key is refused from the next request on."""

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        ...

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key with this hash, or None."""
        ...

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        ...

    async def delete(self, key_id: str) -> bool:
        """Delete a key; return False where there is none with this id."""
        ...
