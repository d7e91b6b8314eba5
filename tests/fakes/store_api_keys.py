"""An in-memory `ApiKeyStore`."""

from collections.abc import Mapping
from datetime import datetime

from backend.identity.domain import ApiKey, KeyOrigin, KeyRole, ProviderSession
from tests.fakes.store_state import StoreState


class FakeApiKeyStore:
    """Keeps keys in a `StoreState`."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        self._state.api_keys[key.id] = key

    async def add_first(self, key: ApiKey) -> bool:
        """Store a key where there is none yet."""
        if self._state.api_keys:
            return False
        await self.add(key)
        return True

    async def set_configured(self, key: ApiKey) -> None:
        """Store the key of the operator's setting, and delete those from before it."""
        same = await self.find_by_hash(key.key_hash)
        for other in tuple(self._state.api_keys.values()):
            is_older = other.origin in (KeyOrigin.SETTING, KeyOrigin.GENERATED) and other != same
            is_of_first_release = other.origin is None and _owner(other) == _owner(key)
            if is_older or (same is None and is_of_first_release):
                del self._state.api_keys[other.id]
        kept = same.model_dump(include={"id", "created_at", "last_used_at"}) if same is not None else {}
        await self.add(key.model_copy(update=kept))

    async def rotate(self, key_id: str, replacement: ApiKey, ends_at: datetime) -> bool:
        """Store the replacement of a key, which then expires at that instant."""
        old = self._state.api_keys.get(key_id)
        if old is None or old.replaced_by is not None:
            return False
        self._state.api_keys[key_id] = old.model_copy(update={"replaced_by": replacement.id, "expires_at": ends_at})
        await self.add(replacement)
        return True

    async def note_uses(self, uses: Mapping[str, datetime], unless_since: Mapping[str, datetime]) -> None:
        """Store when keys were last used."""
        for key_id, used_at in uses.items():
            key = self._state.api_keys.get(key_id)
            if key is not None and (key.last_used_at is None or key.last_used_at < unless_since[key_id]):
                self._state.api_keys[key_id] = key.model_copy(update={"last_used_at": used_at})

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key, or None."""
        return next((key for key in self._state.api_keys.values() if key.key_hash == key_hash), None)

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key, or None."""
        return self._state.api_keys.get(key_id)

    async def page(self, after: ApiKey | None, limit: int, *, descending: bool) -> tuple[ApiKey, ...]:
        """Return keys behind another one, or the first ones."""
        keys = sorted(self._state.api_keys.values(), key=_place, reverse=descending)
        start = keys.index(after) + 1 if after is not None else 0
        return tuple(keys[start : start + limit])

    async def delete(self, key_id: str) -> bool:
        """Delete a key; False when there was none."""
        for key in tuple(self._state.api_keys.values()):
            if key.replaced_by == key_id:
                self._state.api_keys[key.id] = key.model_copy(update={"replaced_by": None})
        return self._state.api_keys.pop(key_id, None) is not None

    async def end_sessions(self, ended: ProviderSession) -> int:
        """Delete the keys of a session or of a subject."""
        keys = self._state.api_keys
        by_id = ended.session_id is not None
        ids = [
            key.id
            for key in keys.values()
            if key.session is not None
            and (key.session.session_id == ended.session_id if by_id else key.session.subject == ended.subject)
        ]
        for key_id in ids:
            del keys[key_id]
        return len(ids)

    async def delete_expired_sessions(self, before: datetime) -> None:
        """Delete the keys of expired sessions."""
        for key in tuple(self._state.api_keys.values()):
            if key.session is not None and key.expires_at is not None and key.expires_at < before:
                del self._state.api_keys[key.id]


def _place(key: ApiKey) -> tuple[datetime, str]:
    return (key.created_at, key.id)


def _owner(key: ApiKey) -> tuple[str, str, KeyRole]:
    return (key.user_id, key.tenant, key.role)
