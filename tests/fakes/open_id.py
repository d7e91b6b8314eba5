"""An identity provider that signs people in, and a browser that comes back from it."""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from fastapi import FastAPI

from backend.foundation.http.app import create_app
from backend.foundation.http.bodies import PAGE_HEADER
from backend.identity.domain import Caller, ClaimNames, TokenTrust, caller_of_claims
from backend.identity.services import KeyAdministration
from backend.identity.tokens.verifier import JwtVerifier, ProviderKeys
from backend.routes import public_routers
from backend.sign_in.domain import Endpoints, SignInTerms
from backend.sign_in.services import Sessions, SignIn
from shared.errors import Unauthenticated, Unavailable
from tests.fakes.http_api import BASE_URL, FakeHouse
from tests.fakes.identity_provider import ISSUER, IdentityProvider
from tests.fakes.store_api_keys import FakeApiKeyStore

CLIENT_ID = "ballast-page"
AUTHORIZATION = "https://login.example.com/authorize"
END_SESSION = "https://login.example.com/end"
NAMES = ClaimNames(tenant="org", roles="roles", admin_role="root", service_role="portal")


class FakeOpenId:
    """Implements `IdentityProvider` of signing in; each code is taken once, by whom it was made for."""

    def __init__(self, house: FakeHouse) -> None:
        self.provider = IdentityProvider()
        self.trust = TokenTrust(
            issuer=ISSUER, audiences=(CLIENT_ID,), key_set_url="", algorithms=("RS256",), claims=NAMES
        )
        self._verifier = JwtVerifier(ProviderKeys(self.provider.fetch, house.clock), self.trust)
        self._codes: dict[str, tuple[str, Mapping[str, Any]]] = {}

    async def endpoints(self) -> Endpoints:
        """Return where it would be."""
        if self.provider.is_away:
            raise Unavailable("The provider is away.")
        return Endpoints(authorization=AUTHORIZATION, token="https://login.example.com/token", end_session=END_SESSION)

    def log_in(self, address: str, **claims: Any) -> dict[str, str]:
        """Return with what the provider sends a browser back that came by this address."""
        asked = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self._codes)}"
        given = {"aud": CLIENT_ID, "nonce": asked["nonce"], "org": "acme", "sid": "s-1", **claims}
        self._codes[code] = asked["code_challenge"], given
        return {"code": code, "state": asked["state"]}

    async def exchange(self, code: str, verifier: str) -> str:
        """Return the ID token of a code, once."""
        challenge, claims = self._codes.pop(code, ("", {}))
        if urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode() != challenge:
            raise Unauthenticated("The code is wrong.")
        return self.provider.token(**claims)

    async def claims(self, token: str) -> Mapping[str, object]:
        """Check a token as the real one does."""
        return await self._verifier.claims(token)

    async def caller_of(self, claims: Mapping[str, object]) -> Caller:
        """Return whom the claims name."""
        return caller_of_claims(claims, NAMES)


class HeardSignIns:
    """Implements `SignInObserver`."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def note_sign_in(self, caller: Caller) -> None:
        """Note who."""
        self.heard.append(f"signed in: {caller.user_id}")

    def note_refusal(self, reason: str) -> None:
        """Note why."""
        self.heard.append(f"refused: {reason}")

    def note_ended_sessions(self, sessions: int, reason: str) -> None:
        """Note how many."""
        self.heard.append(f"ended {sessions}: {reason}")


class Porch:
    """An API with a page to which people sign in."""

    def __init__(self) -> None:
        self.house = FakeHouse()
        self.openid, self.observer = FakeOpenId(self.house), HeardSignIns()
        terms = SignInTerms(trust=self.openid.trust, client_id=CLIENT_ID, address=BASE_URL, hours=12)
        store, known, clock = FakeApiKeyStore(self.house.state), self.house.state.known_keys, self.house.clock
        keys = KeyAdministration(store, clock, known)
        self.sessions = Sessions(store, clock, keys, timedelta(hours=12), self.observer)
        routers = public_routers(beside_operators=False, page=True, signs_in=True)
        sign_in = SignIn(terms, self.openid, self.sessions, self.observer)
        self.app: FastAPI = create_app(routers, (*self.house.services(), sign_in), self.house.options())

    def browser(self, host: str = BASE_URL) -> httpx2.AsyncClient:
        """Open a browser, which keeps cookies and follows no redirect by itself."""
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=host)

    async def sign_in(self, browser: httpx2.AsyncClient, **claims: Any) -> httpx2.Response:
        """Go to the provider and come back."""
        begun = await browser.get("/sign-in")
        return await browser.get("/sign-in/callback", params=self.openid.log_in(begun.headers["location"], **claims))


PAGE = {PAGE_HEADER: "1"}
