"""Sign people in to the page, and keep their sessions: keys that live in a cookie, for hours."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from backend.foundation.domain.host_secrets import bind_to_host
from backend.identity.domain import ApiKey, Caller, KeyOrigin, KeyRole, ProviderSession
from backend.identity.ports import ApiKeyStore
from backend.identity.services import KeyAdministration, hash_of
from backend.sign_in.domain import Attempt, SignInTerms, session_ended_by, session_in
from backend.sign_in.ports import IdentityProvider, SignInObserver
from shared.clock import Clock
from shared.errors import BallastError, Unauthenticated

SECRET_BYTES = 32
ROTATED_AFTER = timedelta(minutes=15)
OVERLAP = timedelta(seconds=60)
"""How long a replaced key of a session is valid: other requests of the same page are under way with it."""

MOST_SUCCESSORS = 1000
"""So many replacements of one key are followed: more than a session of days has."""


class Opened(NamedTuple):
    """A session as its browser gets it: what it keeps in its cookie, and for how many seconds."""

    secret: str
    seconds: int


class Sessions:
    """Sessions of browsers. Each is an API key whose secret holds the host for which it was opened."""

    def __init__(
        self, store: ApiKeyStore, clock: Clock, keys: KeyAdministration, lifetime: timedelta, observer: SignInObserver
    ) -> None:
        self._store = store
        self._clock = clock
        self._keys = keys
        self._lifetime = lifetime
        self._observer = observer

    async def open(self, caller: Caller, session: ProviderSession, host: str) -> Opened:
        """Open a session of the caller at this host."""
        now = self._clock.now()
        await self._store.delete_expired_sessions(now - timedelta(days=1))
        secret, key = self._make(caller, session, host)
        await self._store.add(key)
        return self._hand_out(secret, key)

    async def renew(self, presented: str, host: str) -> tuple[ApiKey, Opened | None]:
        """Return the key of a session, and its successor where it has been used for `ROTATED_AFTER`.

        A key that was replaced longer than `OVERLAP` ago is known to two browsers, so that the session is ended.

        Raises:
            Unauthenticated: there is no such session, or it has ended.
        """
        key, now = await self._store.find_by_hash(hash_of(presented)), self._clock.now()
        if key is None or key.session is None:
            raise Unauthenticated("There is no session: sign in.")
        if key.has_expired(now):
            if key.replaced_by is not None:
                await self._end_successors(key)
            raise Unauthenticated("The session has ended: sign in again.")
        if key.replaced_by is not None or now - key.created_at < ROTATED_AFTER:
            return key, None
        owner = Caller(user_id=key.user_id, tenant=key.tenant, role=key.role)
        secret, successor = self._make(owner, key.session, host)
        successor = successor.model_copy(update={"expires_at": key.expires_at})
        if not await self._store.rotate(key.id, successor, now + OVERLAP):
            return key, None
        await self._keys.forget_known()
        return successor, self._hand_out(secret, successor)

    async def close(self, presented: str) -> None:
        """End the session of a key, where there is one."""
        key = await self._store.find_by_hash(hash_of(presented))
        if key is not None and key.session is not None and await self._store.delete(key.id):
            await self._keys.forget_known()
            self._observer.note_ended_sessions(1, "signed out")

    async def end(self, ended: ProviderSession) -> None:
        """End what the identity provider says has ended."""
        count = await self._store.end_sessions(ended)
        if count:
            await self._keys.forget_known()
        self._observer.note_ended_sessions(count, "signed out at the identity provider")

    async def _end_successors(self, key: ApiKey) -> None:
        successor_id, count = key.replaced_by, 0
        while successor_id is not None and count < MOST_SUCCESSORS:
            successor = await self._store.find(successor_id)
            count += await self._store.delete(successor_id)
            successor_id = successor.replaced_by if successor is not None else None
        await self._keys.forget_known()
        self._observer.note_ended_sessions(count, "a replaced key of the session came again")

    def _make(self, caller: Caller, session: ProviderSession, host: str) -> tuple[str, ApiKey]:
        secret = secrets.token_urlsafe(SECRET_BYTES)
        key = self._keys.make(bind_to_host(secret, host), caller, KeyOrigin.SESSION)
        return secret, key.model_copy(update={"expires_at": key.created_at + self._lifetime, "session": session})

    def _hand_out(self, secret: str, key: ApiKey) -> Opened:
        left = key.expires_at - self._clock.now() if key.expires_at is not None else self._lifetime
        return Opened(secret, max(1, int(left.total_seconds())))


class SignIn:
    """The way to the identity provider and back."""

    def __init__(
        self, terms: SignInTerms, provider: IdentityProvider, sessions: Sessions, observer: SignInObserver
    ) -> None:
        self.terms = terms
        self.sessions = sessions
        self._provider = provider
        self._observer = observer

    async def begin(self) -> tuple[str, Attempt]:
        """Return where the browser is sent, and what it keeps meanwhile.

        Raises:
            Unavailable: the provider is away.
        """
        endpoints = await self._provider.endpoints()
        attempt = Attempt(**{name: secrets.token_urlsafe(SECRET_BYTES) for name in Attempt.model_fields})
        return attempt.address(endpoints, self.terms), attempt

    async def complete(self, kept: str | None, answer: Mapping[str, str], host: str) -> Opened:
        """Open a session for whom the provider has sent back.

        Raises:
            Unauthenticated: something of the answer is wrong.
            Unavailable: the provider is away.
        """
        try:
            attempt = Attempt.from_cookie(kept)
            code = attempt.code_in(answer, self.terms.issuer)
            claims = await self._provider.claims(await self._provider.exchange(code, attempt.verifier))
            session = session_in(claims, self.terms.client_id, attempt.nonce)
            caller = await self._provider.caller_of(claims)
            if caller.role is KeyRole.SERVICE:
                raise Unauthenticated("A service has no page to sign in to.")
        except BallastError as error:
            self._observer.note_refusal(error.message)
            raise
        opened = await self.sessions.open(caller, session, host)
        self._observer.note_sign_in(caller)
        return opened

    async def end_from_afar(self, logout_token: str) -> None:
        """End the sessions that a provider's logout token names.

        Raises:
            Unauthenticated, InvalidRequest: it is not valid.
            Unavailable: the provider's keys cannot be fetched.
        """
        try:
            ended = session_ended_by(await self._provider.claims(logout_token))
        except BallastError as error:
            self._observer.note_refusal(error.message)
            raise
        await self.sessions.end(ended)

    async def address_of_logout(self) -> str | None:
        """Return where the browser can end its session at the provider, too; None where nowhere or nobody knows.

        Raises:
            Unavailable: the provider is away.
        """
        return (await self._provider.endpoints()).end_session
