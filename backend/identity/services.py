"""Authenticate callers by their API keys, and administer the keys."""

import hashlib
import secrets
from dataclasses import dataclass

from backend.identity.domain import ApiKey, Caller, KeyRole
from backend.identity.ports import ApiKeyStore
from shared.clock import Clock
from shared.errors import InvalidRequest, NotFound, PermissionDenied, Unauthenticated
from shared.ids import IdPrefix, new_id

ACT_FOR_HEADER = "X-Ballast-User"
MAX_USER_ID_CHARS = 256
KEY_PREFIX = "sk-ballast-"
KEY_BYTES = 32
ADMIN_USER_ID = "admin"
DEFAULT_TENANT = "default"


def hash_of(key: str) -> str:
    """Return the SHA-256 of a key, under which the key is stored.

    A key has 256 random bits, so nobody can guess it, and a slow password hash would only delay each request. The
    strength of an admin key that an operator chose himself is his responsibility.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Authenticate:
    """Reads the key from the store at every request, so that a revoked key is refused at once."""

    def __init__(self, store: ApiKeyStore) -> None:
        self._store = store

    async def user(self, secret: str | None, act_for: str | None) -> Caller:
        """Return the user of the key, or the user `act_for` on whose behalf a service calls.

        Raises:
            Unauthenticated: the key is missing or unknown.
            InvalidRequest: the key is a service key, and `act_for` is missing or not a valid user id.
            PermissionDenied: the key is not a service key, and `act_for` is another user.
        """
        key = await self._known(secret)
        if key.role is KeyRole.SERVICE:
            return Caller(user_id=_checked_user_id(act_for), tenant=key.tenant, role=key.role, key_id=key.id)
        if act_for not in (None, key.user_id):
            raise PermissionDenied(f"Only a service key may act for a user with {ACT_FOR_HEADER}.")
        return Caller(user_id=key.user_id, tenant=key.tenant, role=key.role, key_id=key.id)

    async def admin(self, secret: str | None) -> Caller:
        """Return the administrator who calls.

        Raises:
            Unauthenticated: the key is missing or unknown.
            PermissionDenied: the key has another role.
        """
        key = await self._known(secret)
        if key.role is not KeyRole.ADMIN:
            raise PermissionDenied("This takes an API key with role admin.")
        return Caller(user_id=key.user_id, tenant=key.tenant, role=key.role, key_id=key.id)

    async def key_id(self, secret: str | None) -> str:
        """Return the id of a key.

        Raises:
            Unauthenticated: the key is missing or unknown.
        """
        return (await self._known(secret)).id

    async def _known(self, secret: str | None) -> ApiKey:
        if not secret:
            raise Unauthenticated("No API key: send it as 'Authorization: Bearer <key>'.")
        key = await self._store.find_by_hash(hash_of(secret))
        if key is None:
            raise Unauthenticated("The API key is not valid.")
        return key


class KeyAdministration:
    """Issues, lists and revokes API keys; routes check before that the caller is an administrator."""

    def __init__(self, store: ApiKeyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def issue(self, user_id: str, role: KeyRole, tenant: str = DEFAULT_TENANT) -> tuple[ApiKey, str]:
        """Create a key; return it with its secret, which is stored nowhere."""
        secret = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
        record = self._record(secret, user_id, role, tenant)
        await self._store.add(record)
        return record, secret

    async def all(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        return await self._store.list()

    async def find(self, key_id: str) -> ApiKey:
        """Return one key.

        Raises:
            NotFound: no key has this id.
        """
        found = next((key for key in await self._store.list() if key.id == key_id), None)
        if found is None:
            raise NotFound(f"There is no API key '{key_id}'.", param="key_id")
        return found

    async def revoke(self, key_id: str) -> None:
        """Delete a key; it is refused from the next request on.

        Raises:
            NotFound: no key has this id.
        """
        if not await self._store.delete(key_id):
            raise NotFound(f"There is no API key '{key_id}'.", param="key_id")

    async def ensure_admin_key(self, secret: str) -> None:
        """Store a key with role admin and this secret, unless a key with this secret exists."""
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


@dataclass(frozen=True)
class IdentityServices:
    """The use cases of identity, as one value for the application and the routes."""

    authenticate: Authenticate
    api_keys: KeyAdministration


def _checked_user_id(act_for: str | None) -> str:
    if not act_for:
        raise InvalidRequest(f"A service key says for whom it acts: send {ACT_FOR_HEADER}.", param=ACT_FOR_HEADER)
    if len(act_for) > MAX_USER_ID_CHARS or not act_for.isprintable():
        raise InvalidRequest(
            f"{ACT_FOR_HEADER} is at most {MAX_USER_ID_CHARS} printable characters.", param=ACT_FOR_HEADER
        )
    return act_for
