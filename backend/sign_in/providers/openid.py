"""An identity provider that speaks OpenID Connect, over aiohttp and PyJWT."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast
from urllib.parse import quote

import aiohttp
import orjson

from backend.identity.domain import Caller
from backend.identity.ports import TokenReading
from backend.sign_in.domain import Endpoints, SignInTerms
from shared.clock import Clock
from shared.errors import Unauthenticated, Unavailable
from shared.outgoing import is_unforgeable

DISCOVERED_AGAIN = timedelta(minutes=5)
EXCHANGE_SECONDS = 5.0
MAX_ANSWER_BYTES = 262_144
RETRY_SECONDS = 5.0


class OpenIdProvider:
    """Implements `IdentityProvider`; with a `secret`, the provider asks this client for it."""

    def __init__(
        self,
        terms: SignInTerms,
        tokens: TokenReading,
        proxy: str | None,
        clock: Clock,
    ) -> None:
        secret = terms.client_secret
        self._terms = terms
        self._secret = secret.get_secret_value() if secret is not None else None
        self._proxy = proxy
        self._clock = clock
        self._claims, self._caller_of, self._fetch = tokens
        self._document = f"{terms.issuer.rstrip('/')}/.well-known/openid-configuration"
        self._found: tuple[Endpoints, datetime] | None = None

    async def endpoints(self) -> Endpoints:
        """Return where it is asked what; read anew after `DISCOVERED_AGAIN`, and those from before while it is away."""
        now = self._clock.now()
        if self._found is not None and now - self._found[1] < DISCOVERED_AGAIN:
            return self._found[0]
        try:
            endpoints = Endpoints.read(orjson.loads(await self._fetch(self._document)), self._terms.issuer)
            _require_unforgeable(endpoints)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if self._found is not None:
                return self._found[0]
            message = "The identity provider cannot be asked how to sign in."
            raise Unavailable(message, retry_after_seconds=RETRY_SECONDS) from error
        self._found = endpoints, now
        return endpoints

    async def exchange(self, code: str, verifier: str) -> str:
        """Return the ID token for a code."""
        endpoints = await self.endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._terms.callback,
            "code_verifier": verifier,
        }
        headers, form = self._authenticate(form, endpoints)
        try:
            status, answer = await self._post(endpoints.token, form, headers)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unavailable(
                "The identity provider cannot be asked for a token.", retry_after_seconds=RETRY_SECONDS
            ) from error
        token = answer.get("id_token")
        if status >= 500:
            raise Unavailable("The identity provider has failed.", retry_after_seconds=RETRY_SECONDS)
        if status != 200 or not isinstance(token, str):
            raise Unauthenticated("The identity provider does not take the code of this sign-in.")
        return token

    async def claims(self, token: str) -> Mapping[str, object]:
        """Return what a token for this client says."""
        return await self._claims(token)

    async def caller_of(self, claims: Mapping[str, object]) -> Caller:
        """Return whom the claims name."""
        return await self._caller_of(claims)

    def _authenticate(
        self, form: Mapping[str, str], endpoints: Endpoints
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the headers and the form with what shows that we are the client (RFC 6749, section 2.3.1)."""
        client_id = self._terms.client_id
        if self._secret is None:
            return {}, {**form, "client_id": client_id}
        if not endpoints.takes_basic:
            return {}, {**form, "client_id": client_id, "client_secret": self._secret}
        basic = aiohttp.BasicAuth(quote(client_id, safe=""), quote(self._secret, safe=""))
        return {"authorization": basic.encode()}, form

    async def _post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, object]]:
        timeout = aiohttp.ClientTimeout(total=EXCHANGE_SECONDS)
        jar = aiohttp.DummyCookieJar()
        given = {**headers, "accept": "application/json"}
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=jar, proxy=self._proxy) as session,
            session.post(url, data=form, headers=given, allow_redirects=False) as answer,
        ):
            text = bytearray()
            async for piece in answer.content.iter_any():
                text += piece
                if len(text) > MAX_ANSWER_BYTES:
                    raise ValueError("the answer is too long")
            read: Any = orjson.loads(text) if answer.status == 200 else {}
            return answer.status, cast(Mapping[str, object], read) if isinstance(read, dict) else {}


def _require_unforgeable(endpoints: Endpoints) -> None:
    addresses = (endpoints.authorization, endpoints.token, endpoints.end_session)
    if not all(is_unforgeable(address) for address in addresses if address is not None):
        raise ValueError("names an address that is not https")
