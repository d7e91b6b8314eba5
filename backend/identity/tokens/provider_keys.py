"""The keys of the identity provider, fetched over HTTP and kept while it is away."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta

import aiohttp
import jwt

from backend.identity.tokens.key_set import KeySet
from shared.clock import Clock
from shared.errors import Unauthenticated, Unavailable

FETCH_SECONDS = 5.0
MAX_KEY_SET_BYTES = 262_144
RETRY_SECONDS = 10.0
"""Requests alone make the keys be fetched no more often than this, whatever keys they name."""

KEPT_SECONDS = 86_400.0
"""How long keys are believed that could not be fetched again: a key that leaked is revoked by its absence."""

Fetch = Callable[[], Awaitable[bytes]]


class ProviderKeys:
    """Finds the key that signed a token; an unknown one makes the keys be fetched anew, once for all who wait."""

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._fetching = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fetched_at: datetime | None = None
        self._tried_at: datetime | None = None
        self._is_away = False

    async def refresh(self) -> None:
        """Fetch the keys; those from before stay where it fails.

        Raises:
            Unavailable: the provider is away, or what it sent is no set of keys.
        """
        async with self._fetching:
            await self._fetch_now()

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK:
        """Return the key of this id for this algorithm.

        Raises:
            Unauthenticated: the provider publishes no such key.
            Unavailable: the keys could not be fetched, so that nobody knows.
        """
        found = self._find_kept(kid, algorithm)
        if found is None:
            async with self._fetching:
                if self._may_try():
                    with suppress(Unavailable):
                        await self._fetch_now()
            found = self._find_kept(kid, algorithm)
        if found is not None:
            return found
        if self._is_away:
            message = "The keys of the identity provider cannot be fetched now, so that tokens cannot be checked."
            raise Unavailable(message, retry_after_seconds=RETRY_SECONDS)
        raise Unauthenticated("The token is signed with a key that the identity provider does not publish.")

    def _find_kept(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        if self._keys is None or not self._is_within(self._fetched_at, KEPT_SECONDS):
            return None
        return self._keys.find(kid, algorithm)

    def _may_try(self) -> bool:
        return not self._is_within(self._tried_at, RETRY_SECONDS)

    def _is_within(self, instant: datetime | None, seconds: float) -> bool:
        return instant is not None and self._clock.now() - instant < timedelta(seconds=seconds)

    async def _fetch_now(self) -> None:
        try:
            self._keys = KeySet.read(await self._fetch())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            self._tried_at, self._is_away = self._clock.now(), True
            raise Unavailable("The keys of the identity provider cannot be fetched.") from error
        self._fetched_at = self._tried_at = self._clock.now()
        self._is_away = False


def fetch_over_http(url: str, proxy: str | None) -> Fetch:
    """Return what fetches a set of keys, through the proxy where there is one; redirects are not followed."""

    async def fetch() -> bytes:
        timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), proxy=proxy) as session,
            session.get(url, allow_redirects=False, headers={"accept": "application/json"}) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            return await _read_bounded(answer)

    return fetch


async def _read_bounded(answer: aiohttp.ClientResponse) -> bytes:
    text = bytearray()
    async for piece in answer.content.iter_any():
        text += piece
        if len(text) > MAX_KEY_SET_BYTES:
            raise ValueError(f"longer than {MAX_KEY_SET_BYTES} bytes")
    return bytes(text)
