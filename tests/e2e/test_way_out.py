"""Models and the keys of an identity provider, reached through a proxy and known by a private authority."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.turns import bare_client, text_of, turn
from tests.fakes.identity_provider import AUDIENCE, ISSUER, IdentityProvider, served
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.certificates import Authority, MountedSecret
from tests.servers.forward_proxy import WORD, ForwardProxy, forwarding
from tests.servers.services import Launch

pytestmark = pytest.mark.combination

MODELS, LOGIN = "models.example.com", "login.example.com"


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    with forwarding() as lent:
        yield lent


@pytest.fixture
def pair(launch: Launch, tmp_path: Path, proxy: ForwardProxy) -> Iterator[Pair]:
    authority = Authority()
    for name in (MODELS, LOGIN):
        proxy.hosts[name] = (MountedSecret(tmp_path / name, authority.issue(name), authority.certificate), 0)
    out = {"HTTPS_PROXY": proxy.address, "SSL_CERT_FILE": str(tmp_path / MODELS / "ca.crt")}
    tokens = {
        "BACKEND_JWT_ISSUER": ISSUER,
        "BACKEND_JWT_AUDIENCE": AUDIENCE,
        "BACKEND_JWT_JWKS_URL": f"https://{LOGIN}/keys",
    }
    options = PairOptions(chat_shell={**out, "CHAT_SHELL_MODEL_BASE_URL": f"https://{MODELS}/v1"}, backend=out | tokens)
    with served(IdentityProvider()) as keys:
        proxy.hosts[LOGIN] = (proxy.hosts[LOGIN][0], urlsplit(keys).port or 0)
        started = start_pair(launch, tmp_path / "pair", options)
        proxy.hosts[MODELS] = (proxy.hosts[MODELS][0], urlsplit(started.model_url).port or 0)
        yield started


async def test_models_and_keys_are_reached_through_the_proxy(pair: Pair, proxy: ForwardProxy):
    async with bare_client(pair, "ann") as client, FakeModelControl(pair.model_url) as model:
        await model.script(Reply(text=("through ", "the proxy")))
        assert text_of(await turn(client, "Hi")) == "through the proxy"
    with pair.http(IdentityProvider().token()) as ada:
        assert ada.get("/v1/files").status_code == 200
    assert set(proxy.asked) == {f"{MODELS}:443", f"{LOGIN}:443"}
    for service in (pair.backend, pair.chat_shell):
        assert WORD not in service.spec.log_path.read_text(encoding="utf-8")


async def test_a_model_of_another_authority_is_refused(pair: Pair, proxy: ForwardProxy, tmp_path: Path):
    stranger = MountedSecret(tmp_path / "stranger", Authority("a stranger").issue(MODELS), b"")
    proxy.hosts[MODELS] = (stranger, proxy.hosts[MODELS][1])
    async with bare_client(pair, "ann") as client, FakeModelControl(pair.model_url) as model:
        answer = await client.post("/v1/responses", json={"input": "Hi"})
        assert answer.status_code >= 500
        assert await model.requests() == []
    assert f"{MODELS}:443" in proxy.asked
