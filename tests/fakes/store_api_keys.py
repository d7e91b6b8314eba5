"""An in-memory `ApiKeyStore`."""

from backend.identity.domain import ApiKey
from tests.fakes.store_state import StoreState


class FakeApiKeyStore:
    """Keeps keys in a `StoreState`."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        self._state.api_keys[key.id] = key

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key, or None."""
        return next((key for key in self._state.api_keys.values() if key.key_hash == key_hash), None)

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        return tuple(sorted(self._state.api_keys.values(), key=lambda key: (key.created_at, key.id)))

    async def delete(self, key_id: str) -> bool:
        """Delete a key; False when there was none."""
        return self._state.api_keys.pop(key_id, None) is not None
