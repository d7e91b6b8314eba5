"""Authenticate callers by their API keys or tokens, and administer the keys."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from typing import NamedTuple

from backend.foundation.domain.bounded import Bounded
from backend.identity.domain import (
    DEFAULT_TENANT,
    MAX_PRINCIPAL_CHARS,
    NO_LIMITS,
    TOKEN_FORM,
    ApiKey,
    Caller,
    KeyOrigin,
    KeyPageQuery,
    KeyRole,
    RateLimits,
    key_beginning,
)
from backend.identity.ports import ApiKeyStore, CallerOfToken
from shared.clock import Clock
from shared.errors import Conflict, InvalidRequest, NotFound, PermissionDenied, Unauthenticated, Unavailable
from shared.ids import IdPrefix, new_id
from shared.shares import MOST, Holder

ACT_FOR_HEADER = "X-Ballast-User"
KEY_BYTES = 32
ADMIN = Caller(user_id="admin", tenant=DEFAULT_TENANT, role=KeyRole.ADMIN)
"""Whom the operator's own key names."""

WRITE_USES_SECONDS = 60.0
REFRESH_TOKEN_KEYS_SECONDS = 300.0
MOST_VALID = 10_000
KNOWN_SECONDS = 5.0
"""How long a revoked key may stay valid in a process that cannot be told."""

STRANGERS_AT_ONCE = 4
"""So many keys are looked up at a time that were not valid before, as far as this process remembers."""

WAIT_AS_STRANGER_SECONDS = 10.0


def hash_of(key: str) -> str:
    """Return the SHA-256 of a key, under which the key is stored.

    A key has 256 random bits, so nobody can guess it, and a slow password hash would only delay each request. The
    strength of an admin key that operators choose is their own responsibility.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class KeyUses:
    """Notes uses of keys in memory, and writes them down later: at most once a minute for each key."""

    def __init__(self, store: ApiKeyStore) -> None:
        self._store = store
        self._unwritten: dict[str, datetime] = {}

    def note(self, key_id: str, now: datetime) -> None:
        """Note that a key is used now."""
        self._unwritten[key_id] = now

    async def write(self) -> None:
        """Write down the uses since the last time, but of a key whose use another replica has just written.

        Raises:
            Unavailable: the database is away. The uses are written the next time.
        """
        uses = dict(self._unwritten)
        since = {key_id: used_at - timedelta(seconds=WRITE_USES_SECONDS) for key_id, used_at in uses.items()}
        await self._store.note_uses(uses, since)
        self._unwritten = {key_id: at for key_id, at in self._unwritten.items() if uses.get(key_id) != at}


class _KeyRead(NamedTuple):
    """A key as it was read, and how many changes of keys were known before."""

    key: ApiKey
    changes: int
    at: datetime


class KnownKeys:
    """The keys that were valid lately. What a key is, is known for `KNOWN_SECONDS` unless some key changes meanwhile.

    `announce` tells all other processes of a change; they call `forget`.
    """

    def __init__(self, clock: Clock, announce: Callable[[], Awaitable[None]] | None = None) -> None:
        self._clock = clock
        self._announce = announce
        self._valid: Bounded[str, _KeyRead] = Bounded(MOST_VALID)
        self.changes = 0
        """How often keys have changed, as far as is known here."""

    def was_valid(self, key_hash: str) -> bool:
        """Whether this was the hash of a key the last time."""
        return self._valid.find(key_hash) is not None

    def find(self, key_hash: str) -> ApiKey | None:
        """Return a key that need not be read again."""
        read = self._valid.find(key_hash)
        if read is None or read.changes != self.changes:
            return None
        return read.key if timedelta() <= self._clock.now() - read.at < timedelta(seconds=KNOWN_SECONDS) else None

    def note(self, key_hash: str, key: ApiKey | None, changes: int) -> None:
        """Note what was read; so many `changes` were known before."""
        if key is None:
            self._valid.drop(key_hash)
        else:
            self._valid.put(key_hash, _KeyRead(key, changes, self._clock.now()))

    def forget(self) -> None:
        """Read each key again: some may have changed."""
        self.changes += 1

    async def change(self) -> None:
        """Forget here and in all other processes what keys were."""
        self.forget()
        if self._announce is not None:
            await self._announce()


class Authenticate:
    """Reads keys from the store, and again where they may have changed, so that a revoked key is refused at once.

    Where tokens are accepted, what has the form of one is a token and never looked up as a key. `uses` are written down
    in the background.
    """

    def __init__(
        self,
        store: ApiKeyStore,
        clock: Clock,
        known: KnownKeys,
        caller_of_token: CallerOfToken | None = None,
        wait_as_stranger_seconds: float = WAIT_AS_STRANGER_SECONDS,
    ) -> None:
        self._store = store
        self._wait_as_stranger_seconds = wait_as_stranger_seconds
        self.uses = KeyUses(store)
        self._clock = clock
        self._caller_of_token = caller_of_token
        self._known = known
        self._strangers = asyncio.Semaphore(STRANGERS_AT_ONCE)

    async def user(self, secret: str | None, act_for: str | None) -> Caller:
        """Return the user of the key or token, or the user `act_for` on whose behalf a service calls.

        Raises:
            Unauthenticated: the key or token is missing, unknown or expired.
            Unavailable: the keys that tokens are checked with cannot be fetched.
            InvalidRequest: a service calls, and `act_for` is missing or not a valid user id.
            PermissionDenied: no service calls, and `act_for` is another user.
        """
        return resolve_caller(await self.identify(secret), act_for)

    async def admin(self, secret: str | None) -> Caller:
        """Return the administrator who calls.

        Raises:
            Unauthenticated: the key or token is missing, unknown or expired.
            Unavailable: the keys that tokens are checked with cannot be fetched.
            PermissionDenied: it has another role.
        """
        return require_administrator(await self.identify(secret))

    async def key_id(self, secret: str | None) -> str:
        """Return the id of a key, or the name that stands for it where a token is presented.

        Raises:
            Unauthenticated: the key or token is missing or unknown.
            Unavailable: the keys that tokens are checked with cannot be fetched.
        """
        return (await self.identify(secret)).key_id

    async def identify(self, secret: str | None, client_left: asyncio.Event | None = None) -> Caller:
        """Return whom a key or token names; with that of a service, this is the service itself.

        Raises:
            Unauthenticated: the key or token is missing, unknown or expired, or nobody waits for the answer any more.
            Unavailable: the keys that tokens are checked with cannot be fetched, or many unknown keys are looked up.
        """
        if not secret:
            raise Unauthenticated("No API key: send it as 'Authorization: Bearer <key>'.")
        if self._caller_of_token is not None and TOKEN_FORM.fullmatch(secret):
            return await self._caller_of_token(secret)
        key = await self._find(hash_of(secret), client_left)
        if key is None:
            raise Unauthenticated("The API key is not valid: this server never issued it, or it was revoked.")
        now = self._clock.now()
        if key.expires_at is not None and key.has_expired(now):
            raise Unauthenticated(f"The API key expired at {key.expires_at:%Y-%m-%d %H:%M:%S} UTC.")
        self.uses.note(key.id, now)
        return Caller(user_id=key.user_id, tenant=key.tenant, role=key.role, key_id=key.id, limits=key.limits)

    async def _find(self, key_hash: str, client_left: asyncio.Event | None) -> ApiKey | None:
        """Look a key up, at once where it was valid before; all others share a few places.

        However many wrong keys are tried, they thereby never hold the connections of the right ones; and for a
        client that does not wait for its answer no key is looked up, so that nobody waits behind it.
        """
        if (known := self._known.find(key_hash)) is not None:
            return known
        async with nullcontext() if self._known.was_valid(key_hash) else self._place_of_stranger():
            if client_left is not None and client_left.is_set():
                return None
            changes = self._known.changes
            key = await self._store.find_by_hash(key_hash)
        self._known.note(key_hash, key, changes)
        return key

    @asynccontextmanager
    async def _place_of_stranger(self) -> AsyncGenerator[None]:
        """Hold one of the places while the block runs.

        Raises:
            Unavailable: none became free in time. Retryable.
        """
        try:
            async with asyncio.timeout(self._wait_as_stranger_seconds):
                await self._strangers.acquire()
        except TimeoutError:
            raise Unavailable("Too many unknown API keys are looked up now.", retry_after_seconds=1) from None
        try:
            yield
        finally:
            self._strangers.release()


def resolve_caller(caller: Caller, act_for: str | None) -> Caller:
    """Return the caller, or the user on whose behalf a service calls; see `Authenticate.user`."""
    if caller.role is KeyRole.SERVICE:
        return caller.model_copy(update={"user_id": _check_user_id(act_for)})
    if act_for not in (None, caller.user_id):
        raise PermissionDenied(f"Only a service may act for a user with {ACT_FOR_HEADER}.")
    return caller


def require_administrator(caller: Caller) -> Caller:
    """Return the caller, who must be an administrator; see `Authenticate.admin`."""
    if caller.role is not KeyRole.ADMIN:
        raise PermissionDenied("This takes an API key or a token with role admin.")
    return caller


class KeyAdministration:
    """Issues, lists, rotates and revokes API keys; routes check before that the caller is an administrator."""

    def __init__(self, store: ApiKeyStore, clock: Clock, known: KnownKeys) -> None:
        self._store = store
        self._clock = clock
        self._known = known

    async def issue(
        self,
        user_id: str,
        role: KeyRole,
        tenant: str = DEFAULT_TENANT,
        expires_at: datetime | None = None,
        limits: RateLimits = NO_LIMITS,
    ) -> tuple[ApiKey, str]:
        """Create a key; return it with its secret, which is stored nowhere.

        Raises:
            InvalidRequest: it would have expired already.
        """
        self._check_expiry(expires_at)
        key, secret = self._draw(Caller(user_id=user_id, tenant=tenant, role=role))
        record = key.model_copy(update={"expires_at": expires_at, "limits": limits})
        await self._store.add(record)
        return record, secret

    async def rotate(self, key_id: str, overlap: timedelta, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """Create a key in place of another one, which stays valid for the overlap; return it with its secret.

        Without `expires_at` it lives as long as the other one was meant to live.

        Raises:
            NotFound: no key has this id.
            Conflict: the key has been replaced, has expired, or is that of the operator's setting.
            InvalidRequest: the new key would have expired already.
        """
        old, now = await self.find(key_id), self._clock.now()
        self._check_rotatable(old, now)
        self._check_expiry(expires_at)
        if expires_at is None and old.expires_at is not None:
            expires_at = now + (old.expires_at - old.created_at)
        key, secret = self._draw(Caller(user_id=old.user_id, tenant=old.tenant, role=old.role))
        replacement = key.model_copy(update={"expires_at": expires_at, "limits": old.limits})
        ends_at = now + overlap if old.expires_at is None else min(now + overlap, old.expires_at)
        if not await self._store.rotate(key_id, replacement, ends_at):
            raise Conflict("The API key has just been replaced or revoked.", param="key_id")
        await self._known.change()
        return replacement, secret

    async def page(self, query: KeyPageQuery) -> tuple[tuple[ApiKey, ...], bool]:
        """Return a page of keys, and whether more follow.

        Raises:
            NotFound: no key has the id that the page is to follow.
        """
        after = await self.find(query.after, param="after") if query.after is not None else None
        found = await self._store.page(after, query.limit + 1, descending=query.descending)
        return found[: query.limit], len(found) > query.limit

    async def find(self, key_id: str, *, param: str = "key_id") -> ApiKey:
        """Return one key.

        Raises:
            NotFound: no key has this id.
        """
        found = await self._store.find(key_id)
        if found is None:
            raise NotFound(f"There is no API key '{key_id}'.", param=param)
        return found

    async def revoke(self, key_id: str) -> None:
        """Delete a key; it is refused from the next request on.

        Raises:
            NotFound: no key has this id.
        """
        if not await self._store.delete(key_id):
            raise NotFound(f"There is no API key '{key_id}'.", param="key_id")
        await self._known.change()

    async def forget_known(self) -> None:
        """Have all processes read keys again, because some were deleted or replaced elsewhere."""
        await self._known.change()

    async def set_admin_key(self, secret: str) -> None:
        """Make this secret the operator's admin key, and revoke the one from before."""
        await self._store.set_configured(self.make(secret, ADMIN, KeyOrigin.SETTING))
        await self._known.change()

    async def first_admin_key(self) -> str | None:
        """Make an admin key where there is no key at all; return its secret, or None."""
        secret = secrets.token_urlsafe(KEY_BYTES)
        is_first = await self._store.add_first(self.make(secret, ADMIN, KeyOrigin.GENERATED))
        return secret if is_first else None

    def _check_expiry(self, expires_at: datetime | None) -> None:
        if expires_at is not None and expires_at <= self._clock.now():
            raise InvalidRequest("A key must expire later than now.", param="expires_at")

    def _check_rotatable(self, key: ApiKey, now: datetime) -> None:
        if key.origin is KeyOrigin.SETTING:
            raise Conflict("This is the key of BACKEND_ADMIN_KEY: change the setting.", param="key_id")
        if key.session is not None:
            raise Conflict("This is the session of a browser: its user signs in again.", param="key_id")
        if key.replaced_by is not None:
            raise Conflict(f"The API key has been replaced by '{key.replaced_by}': rotate that one.", param="key_id")
        if key.has_expired(now):
            raise Conflict("The API key has expired: issue a new one.", param="key_id")

    def _draw(self, owner: Caller) -> tuple[ApiKey, str]:
        key_id = new_id(IdPrefix.API_KEY)
        secret = f"{key_beginning(key_id)}{secrets.token_urlsafe(KEY_BYTES)}"
        return self.make(secret, owner, KeyOrigin.ISSUED, key_id), secret

    def make(self, secret: str, owner: Caller, origin: KeyOrigin, key_id: str = "") -> ApiKey:
        """Return a key of an owner that is not stored."""
        return ApiKey(
            id=key_id or new_id(IdPrefix.API_KEY),
            key_hash=hash_of(secret),
            user_id=owner.user_id,
            tenant=owner.tenant,
            role=owner.role,
            created_at=self._clock.now(),
            origin=origin,
        )


def holders_of(caller: Caller) -> tuple[Holder, ...]:
    """Return whose places a caller's work takes: those of the key, and of each user for whom a service key acts."""
    if caller.role is not KeyRole.SERVICE:
        return (Holder(caller.key_id or f"{caller.tenant}/{caller.user_id}"),)
    return (Holder(f"{caller.key_id}/{caller.user_id}"), Holder(caller.key_id, MOST))


def _check_user_id(act_for: str | None) -> str:
    if not act_for:
        raise InvalidRequest(f"A service key must say for whom it acts; send {ACT_FOR_HEADER}.", param=ACT_FOR_HEADER)
    if len(act_for) > MAX_PRINCIPAL_CHARS or not act_for.isprintable():
        raise InvalidRequest(
            f"The user must be named by at most {MAX_PRINCIPAL_CHARS} printable characters.", param=ACT_FOR_HEADER
        )
    return act_for
