"""The keys of an identity provider come over HTTP, and a backend with them takes tokens on all its ways in."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from backend.identity.tokens.verifier import MAX_KEY_SET_BYTES, fetch_over_http
from tests.e2e.pair import Pair, lone_backend
from tests.fakes.identity_provider import AUDIENCE, ISSUER, IdentityProvider, rsa_key, served
from tests.servers.services import Launch

ORIGIN = "https://app.example.com"
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def provider() -> IdentityProvider:
    return IdentityProvider()


@pytest.fixture
def address(provider: IdentityProvider) -> Iterator[str]:
    with served(provider) as address:
        yield address


@pytest.fixture
def backend(launch: Launch, tmp_path: Path, address: str) -> Pair:
    settings = {
        "BACKEND_JWT_ISSUER": ISSUER,
        "BACKEND_JWT_AUDIENCE": f"else, {AUDIENCE}",
        "BACKEND_JWT_JWKS_URL": address,
        "BACKEND_JWT_TENANT_CLAIM": "org",
        "BACKEND_JWT_ROLES_CLAIM": "roles",
        "BACKEND_JWT_ADMIN_ROLE": "boss",
        "BACKEND_CORS_ORIGINS": ORIGIN,
    }
    return lone_backend(launch, tmp_path, **settings)


async def test_keys_come_over_http_within_bounds(provider: IdentityProvider, address: str):
    fetch = fetch_over_http(address, None)
    assert await fetch() == provider.key_set()
    provider.answer = b" " * (MAX_KEY_SET_BYTES + 1)
    with pytest.raises(ValueError, match="longer"):
        await fetch()
    provider.is_away = True
    with pytest.raises(ValueError, match="503"):
        await fetch()


def created(backend: Pair, token: str) -> str:
    with backend.http(token) as ada:
        answer = ada.post("/v1/conversations", json={})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def status_of(backend: Pair, token: str, path: str = "/v1/api_keys") -> int:
    with backend.http(token) as client:
        return client.get(path).status_code


def test_a_platforms_own_users_come_in_by_every_way(backend: Pair, provider: IdentityProvider):
    ada, root = provider.token(org="acme"), provider.token(sub="root", org="acme", roles=["boss"])
    place = f"/v1/conversations/{created(backend, ada)}"
    strangers = [provider.token(sub="eve", org="acme"), provider.token(org="other")]
    assert [status_of(backend, token, place) for token in (ada, *strangers)] == [200, 404, 404]
    assert [status_of(backend, token) for token in (root, ada)] == [200, 403]

    with httpx2.Client(base_url=backend.backend_url, headers={"origin": ORIGIN}, verify=False) as browser:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        assert browser.options("/v1/responses", headers=asked).status_code == 200
        refused = browser.get(place, headers={"authorization": f"Bearer {provider.token(exp=1)}"})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, ORIGIN)
        listed = browser.post("/mcp", json=PING, headers={"authorization": f"Bearer {ada}"})
        assert (listed.status_code, "tools" in listed.json()["result"]) == (200, True)
        assert browser.post("/mcp", json=PING, headers={"authorization": "Bearer ey.e.e"}).status_code == 401
    large: dict[str, object] = {"items": [{"role": "user", "content": "x" * 100_000}]}
    for token, status in ((ada, 201), (provider.token(exp=1), 401)):
        with backend.http(token) as client:
            assert client.post("/v1/conversations", json=large).status_code == status

    # the provider rotates its keys, goes away, and what is known goes on
    provider.is_away = True
    provider.keys["second"] = rsa_key("second")
    assert status_of(backend, ada, place) == 200
    provider.is_away = False
    log = backend.backend.spec.log_path.read_text(encoding="utf-8")
    assert '"key_id": "jwt_' in log or "key_id=jwt_" in log
    for token in (ada, root, *strangers):
        assert not any(part in log for part in token.split("."))


def test_a_backend_starts_while_the_provider_is_away(launch: Launch, tmp_path: Path):
    provider = IdentityProvider()
    provider.is_away = True
    with served(provider) as address:
        backend = lone_backend(
            launch,
            tmp_path,
            BACKEND_JWT_ISSUER=ISSUER,
            BACKEND_JWT_AUDIENCE=AUDIENCE,
            BACKEND_JWT_JWKS_URL=address,
        )
        with backend.http(provider.token()) as client:
            answer = client.get("/v1/files")
        assert (answer.status_code, int(answer.headers["retry-after"])) == (503, 10)
