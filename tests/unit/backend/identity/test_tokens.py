"""Callers whom the tokens of an identity provider name."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from backend.identity.domain import TOKEN_FORM, ClaimNames, KeyRole, TokenTrust, caller_of_claims
from backend.identity.services import Authenticate
from backend.identity.tokens.verifier import (
    KEPT_SECONDS,
    MAX_KEYS,
    MAX_TOKEN_CHARS,
    RETRY_SECONDS,
    JwtVerifier,
    KeySet,
    ProviderKeys,
)
from shared.errors import BallastError, InvalidRequest, PermissionDenied, Unauthenticated, Unavailable
from tests.fakes.clock import FakeClock
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.identity_provider import (
    AUDIENCE,
    ISSUER,
    IdentityProvider,
    curve_key,
    published,
    rsa_key,
)
from tests.fakes.store_api_keys import FakeApiKeyStore

NAMES = ClaimNames(tenant="org", roles="realm_access.roles", admin_role="ballast-admin", service_role="ballast-portal")
LONG_AGO, FAR_AHEAD = 1_000_000_000, 4_000_000_000


class Lodge:
    """An API that accepts the tokens of one provider."""

    def __init__(self, *algorithms: str, names: ClaimNames = NAMES) -> None:
        self.provider, self.clock = IdentityProvider(), FakeClock()
        trust = TokenTrust(
            issuer=ISSUER,
            audiences=(AUDIENCE, "other-name"),
            key_set_url="",
            algorithms=algorithms or ("RS256", "ES256"),
            claims=names,
        )
        self.keys = ProviderKeys(self.provider.fetch, self.clock)
        caller_of_token = JwtVerifier(self.keys, trust).caller
        self.house = FakeHouse(caller_of_token=caller_of_token)
        self.authenticate = Authenticate(
            FakeApiKeyStore(self.house.state), self.house.clock, self.house.state.known_keys, caller_of_token
        )

    def token(self, **claims: Any) -> str:
        return self.provider.token(**{"org": "acme", **claims})

    async def refusal(self, token: str) -> BallastError:
        with pytest.raises(BallastError) as raised:
            await self.authenticate.user(token, None)
        assert token not in raised.value.full_message
        assert raised.value.__cause__ is raised.value.__context__ is None
        return raised.value


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_claims_name_user_tenant_and_role():
    lodge = Lodge()
    ada = await lodge.authenticate.user(lodge.token(), None)
    assert (ada.user_id, ada.tenant, ada.role) == ("ada", "acme", KeyRole.USER)
    root = lodge.token(sub="root", realm_access={"roles": ["other", "ballast-admin"]})
    assert (await lodge.authenticate.admin(root)).user_id == "root"
    with pytest.raises(PermissionDenied):
        await lodge.authenticate.admin(lodge.token())


async def test_a_service_token_acts_for_users_and_a_users_token_does_not():
    lodge = Lodge()
    portal = lodge.token(sub="portal", realm_access={"roles": ["ballast-portal"]})
    acting = await lodge.authenticate.user(portal, "eve")
    assert (acting.user_id, acting.tenant, acting.role) == ("eve", "acme", KeyRole.SERVICE)
    assert acting.key_id == await lodge.authenticate.key_id(portal)
    with pytest.raises(InvalidRequest):
        await lodge.authenticate.user(portal, None)
    with pytest.raises(PermissionDenied):
        await lodge.authenticate.user(lodge.token(), "eve")


async def test_users_and_tenants_share_no_name_in_logs_and_budgets():
    lodge = Lodge()
    people = (("ada", "acme"), ("eve", "acme"), ("ada", "other"), ("a", "acme"), ("acme", "ada"))
    names = {await lodge.authenticate.key_id(lodge.token(sub=user, org=org)) for user, org in people}
    assert len(names) == len(people)
    assert not any("ada" in name or "acme" in name for name in names)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"iss": None}, "lacks"),
        ({"aud": "somebody-else"}, "another audience"),
        ({"aud": None}, "lacks"),
        ({"exp": LONG_AGO}, "has expired"),
        ({"exp": None}, "lacks"),
        ({"exp": "soon"}, "not valid"),
        ({"exp": float("inf")}, "not valid"),
        ({"nbf": FAR_AHEAD}, "not valid yet"),
        ({"iat": FAR_AHEAD}, "not valid yet"),
        ({"sub": None}, "names no user"),
        ({"sub": ""}, "names no user"),
        ({"sub": " ada"}, "names no user"),
        ({"sub": "a\nb"}, "names no user"),
        ({"sub": "a" * 257}, "names no user"),
        ({"org": None}, "names no tenant"),
        ({"org": 7}, "names no tenant"),
    ],
)
async def test_a_token_with_a_wrong_claim_is_refused_with_the_reason(claims: dict[str, object], words: str):
    lodge = Lodge()
    refusal = await lodge.refusal(lodge.token(**claims))
    assert isinstance(refusal, Unauthenticated)
    assert words in refusal.message


async def test_clocks_may_differ_by_a_little():
    lodge, now = Lodge(), int(datetime.now(UTC).timestamp())
    assert (await lodge.authenticate.user(lodge.token(exp=now - 5, nbf=now + 5), None)).user_id == "ada"


async def test_tokens_that_anybody_can_make_are_refused():
    lodge = Lodge()
    header, claims, signature = lodge.token().split(".")
    public = rsa_key("first").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with_public_key = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{claims}"
    mac = hmac.digest(public, with_public_key.encode(), sha256)
    other_claims = encoded({"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "org": "acme", "exp": FAR_AHEAD})
    forged = {
        "no signature": f"{encoded({'alg': 'none', 'kid': 'first'})}.{claims}.",
        "an empty signature": f"{header}.{claims}.",
        "the public key as a secret": f"{with_public_key}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}",
        "other claims": f"{header}.{other_claims}.{signature}",
        "another algorithm": f"{encoded({'alg': 'PS256', 'kid': 'first'})}.{claims}.{signature}",
        "a curve on an RSA key": f"{encoded({'alg': 'ES256', 'kid': 'first'})}.{claims}.{signature}",
        "no algorithm": f"{encoded({'kid': 'first'})}.{claims}.{signature}",
        "a key of its own": f"{encoded({'alg': 'RS256', 'jwk': published('x', rsa_key('evil'))})}.{claims}.{signature}",
        "too long": f"{header}.{claims}.{'A' * MAX_TOKEN_CHARS}",
    }
    for token in forged.values():
        assert isinstance(await lodge.refusal(token), Unauthenticated)


async def test_keys_on_curves_sign_too_and_only_with_the_algorithms_that_are_set():
    lodge = Lodge("ES256")
    lodge.provider.keys["curve"] = curve_key("curve")
    token = lodge.provider.token("curve", "ES256", org="acme")
    assert (await lodge.authenticate.user(token, None)).user_id == "ada"
    assert "algorithm" in (await lodge.refusal(lodge.token())).message


async def test_a_token_without_a_key_id_is_checked_where_one_key_suits():
    lodge = Lodge()
    token = lodge.provider.token(None, org="acme")
    assert (await lodge.authenticate.user(token, None)).user_id == "ada"
    lodge.provider.keys["second"] = rsa_key("second")
    await lodge.keys.refresh()
    assert "does not publish" in (await lodge.refusal(token)).message


async def test_keys_rotate_and_what_is_withdrawn_is_refused():
    lodge = Lodge()
    old = lodge.token()
    await lodge.authenticate.user(old, None)
    lodge.provider.keys["second"] = rsa_key("second")
    lodge.clock.advance(RETRY_SECONDS + 1)
    new = lodge.token(kid="second")
    for token in (new, old):
        assert (await lodge.authenticate.user(token, None)).user_id == "ada"
    assert lodge.provider.fetches == 2
    del lodge.provider.keys["first"]
    await lodge.keys.refresh()
    assert "does not publish" in (await lodge.refusal(old)).message


async def test_unknown_keys_make_the_provider_be_asked_rarely():
    lodge = Lodge()
    lodge.provider.keys["evil"] = rsa_key("evil")
    tokens = [lodge.token(kid="evil")] * 20
    del lodge.provider.keys["evil"]
    for _ in range(2):
        for token in tokens:
            assert "does not publish" in (await lodge.refusal(token)).message
        lodge.clock.advance(RETRY_SECONDS + 1)
    assert lodge.provider.fetches == 2


async def test_many_who_wait_for_keys_fetch_them_once():
    lodge, may_answer = Lodge(), asyncio.Event()
    fetch = lodge.provider.fetch

    async def slowly() -> bytes:
        await may_answer.wait()
        return await fetch()

    keys = ProviderKeys(slowly, lodge.clock)
    finding = [asyncio.create_task(keys.find("first", "RS256")) for _ in range(50)]
    leaving = asyncio.create_task(keys.find("first", "RS256"))
    await asyncio.sleep(0)
    leaving.cancel()
    may_answer.set()
    assert len({await each for each in finding}) == 1
    assert lodge.provider.fetches == 1


async def test_one_who_leaves_while_keys_are_fetched_leaves_no_trace():
    lodge, begun = Lodge(), asyncio.Event()
    fetch = lodge.provider.fetch

    async def never_at_first() -> bytes:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return await fetch()

    keys = ProviderKeys(never_at_first, lodge.clock)
    leaving = asyncio.create_task(keys.find("first", "RS256"))
    await begun.wait()
    staying = asyncio.create_task(keys.find("first", "RS256"))
    leaving.cancel()
    assert (await staying).algorithm_name == "RS256"


async def test_known_keys_are_used_while_the_provider_is_away_and_for_a_day_at_most():
    lodge = Lodge()
    known, lodge.provider.keys["second"] = lodge.token(), rsa_key("second")
    unknown = lodge.token(kid="second")
    del lodge.provider.keys["second"]
    lodge.provider.is_away = True
    away = await lodge.refusal(known)
    assert isinstance(away, Unavailable)
    assert away.retry_after_seconds is not None
    lodge.provider.is_away = False
    lodge.clock.advance(RETRY_SECONDS + 1)
    await lodge.authenticate.user(known, None)
    lodge.provider.is_away = True
    with pytest.raises(Unavailable):
        await lodge.keys.refresh()
    assert (await lodge.authenticate.user(known, None)).user_id == "ada"
    assert isinstance(await lodge.refusal(unknown), Unavailable)
    lodge.clock.advance(KEPT_SECONDS + 1)
    assert isinstance(await lodge.refusal(known), Unavailable)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"null",
        b'{"keys": 5}',
        b'{"keys": []}',
        b'{"keys": [5, {}, {"kty": "oct", "k": "c2VjcmV0"}]}',
        b"[" * 10_000,
        json.dumps({"keys": [{"kty": "RSA"}] * (MAX_KEYS + 1)}).encode(),
    ],
)
async def test_what_is_no_set_of_keys_changes_nothing(answer: bytes):
    lodge = Lodge()
    token = lodge.token()
    await lodge.authenticate.user(token, None)
    lodge.provider.answer = answer
    with pytest.raises(Unavailable):
        await lodge.keys.refresh()
    assert (await lodge.authenticate.user(token, None)).user_id == "ada"


def test_keys_that_cannot_be_used_are_passed_over():
    odd: list[dict[str, object]] = [
        {"kty": "RSA", "kid": "odd"},
        {"kty": "EC", "kid": "odd", "crv": "P-0"},
        {"kty": "RSA", "kid": 5, "n": []},
    ]
    encrypting = published("hidden", rsa_key("first"), use="enc")
    keys = KeySet.read(json.dumps({"keys": [*odd, encrypting, published("good", rsa_key("first"))]}).encode())
    assert (keys.find("odd", "RS256"), keys.find("hidden", "RS256")) == (None, None)
    assert keys.find("good", "RS256") is not None


async def test_short_keys_sign_nothing():
    lodge = Lodge()
    lodge.provider.keys = {"first": rsa.generate_private_key(public_exponent=65_537, key_size=1024)}
    with pytest.warns(UserWarning, match="below"):
        token = lodge.token()
    assert "not valid" in (await lodge.refusal(token)).message


@given(
    st.dictionaries(
        st.sampled_from(["sub", "org", "realm_access", "roles"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
    ),
    st.sampled_from(["sub", "org", "realm_access.roles", "roles", "a.b.c", "."]),
)
def test_whatever_claims_say_they_name_a_caller_or_nobody(claims: dict[str, Any], name: str):
    names = ClaimNames(tenant="org", roles=name, admin_role="boss")
    try:
        caller = caller_of_claims(claims, names)
    except Unauthenticated:
        return
    assert (caller.user_id, caller.tenant) == (claims["sub"], claims["org"])
    assert caller.role is KeyRole.USER or "boss" in str(claims)


def test_claims_may_have_dots_in_their_names():
    claims = {"sub": "ada", "https://example.com/roles": "reader boss"}
    names = ClaimNames(roles="https://example.com/roles", admin_role="boss")
    assert caller_of_claims(claims, names).role is KeyRole.ADMIN


@cache
def built_app() -> FastAPI:
    return FakeHouse().app()


@pytest.fixture
def lodge() -> Lodge:
    return Lodge()


@pytest.fixture
async def stranger(lodge: Lodge) -> AsyncIterator[httpx2.AsyncClient]:
    app = built_app()
    lodge.house.stand_behind(app)
    async with client_of(app) as client:
        yield client


async def test_every_route_takes_tokens_and_refuses_wrong_ones(lodge: Lodge, stranger: httpx2.AsyncClient):
    root = lodge.token(sub="root", realm_access={"roles": ["ballast-admin"]})
    header, claims, signature = root.split(".")
    wrong = f"{header}.{claims}.{signature[:-6]}AAAAAA"
    checked = 0
    for path, methods in built_app().openapi()["paths"].items():
        for method in set(methods) & {"get", "post", "put", "patch", "delete"}:
            if path.startswith("/internal") or path in ("/healthz", "/readyz", "/metrics"):
                continue
            refused = await stranger.request(method, path, headers={"authorization": f"Bearer {wrong}"})
            taken = await stranger.request(method, path, headers={"authorization": f"Bearer {root}"})
            assert (path, refused.status_code) == (path, 401)
            assert refused.headers["www-authenticate"] == "Bearer"
            assert (path, taken.status_code) != (path, 401)
            checked += 1
    assert checked > 50


async def test_chat_shells_routes_take_no_tokens_of_users(lodge: Lodge, stranger: httpx2.AsyncClient):
    root = lodge.token(sub="root", realm_access={"roles": ["ballast-admin"]})
    answer = await stranger.post("/internal/v1/knowledge/search", json={}, headers={"authorization": f"Bearer {root}"})
    assert answer.status_code == 401


async def test_a_provider_that_is_away_is_a_503_that_says_when_to_try_again(lodge: Lodge, stranger: httpx2.AsyncClient):
    lodge.provider.is_away = True
    answer = await stranger.get("/v1/models", headers={"authorization": f"Bearer {lodge.token()}"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "identity provider" in answer.json()["error"]["message"]


async def test_keys_stay_valid_beside_tokens(lodge: Lodge, stranger: httpx2.AsyncClient):
    key = await lodge.house.key("ada")
    assert TOKEN_FORM.fullmatch(key) is None
    answer = await stranger.get("/v1/models", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    assert lodge.provider.fetches == 0


BASE64 = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", max_size=80)
JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["RS256", "none", "first"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["alg", "kid", "crit", "b64", "typ", "x5u", "jku"]), inner, max_size=5)
    ),
)
PARTS = (
    BASE64 | JSON_TEXT.map(encoded) | st.just(encoded([]) * 3000) | st.just(encoded({"alg": "RS256", "kid": "first"}))
)
VALUES = (
    st.tuples(PARTS, PARTS, PARTS).map(lambda parts: "Bearer ey" + ".".join(parts))
    | st.tuples(JSON_TEXT.map(encoded), PARTS, PARTS).map(lambda parts: "Bearer " + ".".join(parts))
    | st.lists(PARTS, max_size=6).map(lambda parts: "Bearer " + ".".join(parts))
    | st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=200)
)


@given(st.lists(VALUES, min_size=1, max_size=2))
def test_no_authorization_header_is_a_500(values: list[str]):
    async def status() -> int:
        lodge, app = Lodge(), built_app()
        lodge.house.stand_behind(app)
        async with client_of(app) as client:
            headers = [(b"authorization", value.encode("latin-1")) for value in values]
            return (await client.get("/v1/models", headers=headers)).status_code

    assert asyncio.run(status()) in (400, 401)
