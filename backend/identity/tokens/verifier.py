"""Checks tokens with PyJWT against the keys of the identity provider."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import cast

import aiohttp
import jwt
import orjson

from backend.identity.domain import Caller, TokenTrust, caller_of_claims, groups_in_claims
from backend.identity.ports import NoteGroups
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


def fetch_over_http(url: str, proxy: str | None, seconds: float = FETCH_SECONDS) -> Fetch:
    """Return what fetches a set of keys, through the proxy where there is one; redirects are not followed."""

    async def fetch() -> bytes:
        timeout = aiohttp.ClientTimeout(total=seconds)
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


MAX_KEYS = 100


class KeySet:
    """The keys that may sign tokens; symmetric ones, and those for encryption, are left out."""

    def __init__(self, keys: tuple[Mapping[str, object], ...]) -> None:
        self._keys = keys
        self._read: dict[tuple[str | None, str], jwt.PyJWK | None] = {}

    @classmethod
    def read(cls, text: bytes) -> "KeySet":
        """Read a set of keys.

        Raises:
            ValueError: it is none, has more than `MAX_KEYS` keys, or none that signs.
        """
        answer: object = orjson.loads(text)
        listed = cast(Mapping[str, object], answer).get("keys") if isinstance(answer, dict) else None
        if not isinstance(listed, list) or len(cast(list[object], listed)) > MAX_KEYS:
            raise ValueError("is no set of keys")
        keys = tuple(key for key in map(_as_signing, cast(list[object], listed)) if key is not None)
        if not keys:
            raise ValueError("holds no key that signs")
        return cls(keys)

    def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key of this id for this algorithm; without an id the only key that suits, if it is the only one.

        What was looked up for an id of the set is kept, because building a key takes longer than using it.
        """
        if kid is not None and all(key.get("kid") != kid for key in self._keys):
            return None
        wanted = (kid, algorithm)
        if wanted not in self._read:
            fitting = [key for key in self._keys if kid is None or key.get("kid") == kid]
            built = [key for key in (_build(each, algorithm) for each in fitting) if key is not None]
            self._read[wanted] = built[0] if len(built) == 1 else None
        return self._read[wanted]


def _as_signing(key: object) -> Mapping[str, object] | None:
    if not isinstance(key, dict):
        return None
    known = cast(Mapping[str, object], key)
    return known if known.get("use", "sig") == "sig" and known.get("kty") in ("RSA", "EC", "OKP") else None


def _build(key: Mapping[str, object], algorithm: str) -> jwt.PyJWK | None:
    if key.get("alg", algorithm) != algorithm:
        return None
    try:
        return jwt.PyJWK(dict(key), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


MAX_TOKEN_CHARS = 48_000
"""A token with a thousand groups; all headers together have 65,536 bytes."""

MOST_GROUPS = 1_000
LEEWAY_SECONDS = 30
"""By how much the clocks of the provider and of this machine may differ."""

_REFUSALS: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "The token has expired.",
    jwt.ImmatureSignatureError: "The token is not valid yet.",
    jwt.InvalidIssuerError: "The token is of another issuer than the one whose tokens are accepted here.",
    jwt.InvalidAudienceError: "The token is meant for another audience.",
    jwt.MissingRequiredClaimError: "The token lacks one of the claims exp, iss and aud, or iat where groups are read.",
    jwt.InvalidSignatureError: "The signature of the token is wrong.",
}


class JwtVerifier:
    """Checks tokens. No refusal quotes a token, and none is the cause of another exception."""

    def __init__(self, keys: ProviderKeys, trust: TokenTrust, note_groups: NoteGroups | None = None) -> None:
        self._keys = keys
        self._trust = trust
        self._note_groups = note_groups if trust.claims.groups else None
        self._required = ["exp", "iss", "aud", *(["iat"] if self._note_groups is not None else [])]

    async def caller(self, token: str) -> Caller:
        """Return whom a token names; see `CallerOfToken`."""
        return await self.caller_of(await self.claims(token))

    async def caller_of(self, claims: Mapping[str, object]) -> Caller:
        """Return whom the claims of a valid token name, and note their groups.

        Raises:
            Unauthenticated: they name nobody.
        """
        names = self._trust.claims
        caller = caller_of_claims(claims, names)
        if self._note_groups is not None:
            groups = groups_in_claims(claims, names.groups, MOST_GROUPS)
            await self._note_groups(caller, groups, int(cast(float, claims["iat"])))
        return caller

    async def claims(self, token: str) -> Mapping[str, object]:
        """Return what a valid token says.

        Raises:
            Unauthenticated: the token is not valid; the message tells nothing that stands in it.
            Unavailable: the keys that would tell are not known, because the provider is away.
        """
        kid, algorithm = self._read_header(token)
        key = await self._keys.find(kid, algorithm)
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._trust.audiences,
                issuer=self._trust.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": self._required, "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            refusal = next((words for kind, words in _REFUSALS.items() if isinstance(error, kind)), None)
        raise Unauthenticated(refusal or "The token is not valid.")

    def _read_header(self, token: str) -> tuple[str | None, str]:
        if len(token) > MAX_TOKEN_CHARS:
            raise Unauthenticated(f"The token is longer than {MAX_TOKEN_CHARS} characters.")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            header = None
        if header is None:
            raise Unauthenticated("The token is no JWT.")
        algorithm = header.get("alg")
        if algorithm not in self._trust.algorithms:
            raise Unauthenticated("The token is signed with an algorithm that is not accepted here.")
        return header.get("kid"), str(algorithm)
