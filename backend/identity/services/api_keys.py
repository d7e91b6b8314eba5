"""API keys: issuing, listing, revoking."""

import hashlib
import secrets
from dataclasses import dataclass

from backend.identity.domain.identity import ApiKey, KeyRole
from backend.identity.ports.identity import ApiKeyStore
from shared.clock import Clock
from shared.errors import NotFound
from shared.ids import IdPrefix, new_id

KEY_PREFIX = "sk-ballast-"
KEY_BYTES = 32
ADMIN_USER_ID = "admin"
DEFAULT_TENANT = "default"


def hash_of(key: str) -> str:
    """Return what of a key is stored: its SHA-256.

    A key is 256 random bits, so nobody can try candidates, and a slow password hash would only tax each
    request. An admin key that an operator chose himself is as strong as he made it.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class IssuedKey:
    """A new key and its secret, which exists nowhere else from now on."""

    record: ApiKey
    secret: str


class KeyAdministration:
    """What an administrator does with keys; who is one, the caller has checked."""

    def __init__(self, store: ApiKeyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def issue(self, user_id: str, role: KeyRole, tenant: str = DEFAULT_TENANT) -> IssuedKey:
        """Make a key."""
        secret = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
        record = self._record(secret, user_id, role, tenant)
        await self._store.add(record)
        return IssuedKey(record, secret)

    async def all(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        return await self._store.list()

    async def find(self, key_id: str) -> ApiKey:
        """Return one key.

        Raises:
            NotFound: there is none.
        """
        found = next((key for key in await self._store.list() if key.id == key_id), None)
        if found is None:
            raise NotFound(f"There is no API key '{key_id}'.", param="key_id")
        return found

    async def revoke(self, key_id: str) -> None:
        """Delete a key; it is refused from the next request on.

        Raises:
            NotFound: there is none.
        """
        if not await self._store.delete(key_id):
            raise NotFound(f"There is no API key '{key_id}'.", param="key_id")

    async def ensure_admin_key(self, secret: str) -> None:
        """Make sure that this key exists, with role admin; no effect when it does."""
        if await self._store.find_by_hash(hash_of(secret)) is None:
            await self._store.add(self._record(secret, ADMIN_USER_ID, KeyRole.ADMIN, DEFAULT_TENANT))

    def _record(self, secret: str, user_id: str, role: KeyRole, tenant: str) -> ApiKey:
        return ApiKey(
            id=new_id(IdPrefix.API_KEY),
            key_hash=hash_of(secret),
            user_id=user_id,
            tenant=tenant,
            role=role,
            created_at=self._clock.now(),
        )
