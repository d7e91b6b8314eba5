"""TLS on all servers of the pair, with certificates on both sides that are exchanged while it runs."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import orjson
import pytest

from tests.e2e.pair import SERVICE_TOKEN, Pair, PairOptions, lone_backend, start_pair
from tests.e2e.turns import file_search, live_events, new_base, next_delta, text_of, tool_results, turn
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.patience import PATIENCE_SECONDS
from tests.servers.certificates import DAY, Authority, Issued, MountedSecret
from tests.servers.ports import free_port
from tests.servers.recorder import Recorder, recording
from tests.servers.services import Launch, RunningService

TRANSPORTS = pytest.mark.parametrize("over_http", first_of(False, True), ids=["grpc", "http"])
SECRETS = ("zebrafish valve", "quillmark question", "moonstone answer", "helpful-words")


class Secured:
    """The mounted secrets of both services, of one authority at first."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.backend, self.chat_shell = (
            MountedSecret(folder / name, self.authority.issue(), self.authority.certificate)
            for name in ("backend-tls", "chat-shell-tls")
        )

    def options(self, *, over_http: bool, reach: Recorder | None = None) -> PairOptions:
        """Return what makes a pair of it."""
        return PairOptions(
            over_http=over_http,
            backend=self.backend.settings("BACKEND"),
            chat_shell=self.chat_shell.settings("CHAT_SHELL"),
            tls=True,
            reach=reach.before if reach is not None else lambda port: port,
        )

    def exchange(self, authority: Authority, *trusted: Authority) -> None:
        """Give both services new certificates of an authority, and new ones to trust."""
        for secret in (self.backend, self.chat_shell):
            secret.write(authority.issue(), b"".join(each.certificate for each in trusted))


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as lent:
        yield lent


def users_client(pair: Pair, user_id: str, *authorities: Authority) -> httpx2.AsyncClient:
    """Return a client of a user, who shows no certificate and checks the backend's."""
    trusted = ssl.create_default_context(cadata=b"".join(each.certificate for each in authorities).decode())
    headers = {"Authorization": f"Bearer {pair.key(user_id)}"}
    return httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, verify=trusted
    )


async def tell_secrets(pair: Pair, client: httpx2.AsyncClient) -> None:
    """Run a turn in which question, instructions, passages and answer hold secrets."""
    query = orjson.dumps({"query": "valve"}).decode()
    async with FakeModelControl(pair.model_url) as model:
        await model.reset()
        called = ScriptedCall(name="knowledge_base_search", arguments=query)
        await model.script(Reply(tool_calls=(called,)), Reply(text=("the moonstone ", "answer")))
        base_id = await new_base(client, "Farm", rules="The zebrafish valve is red.")
        asked = {"instructions": "Say helpful-words.", "tools": [file_search(base_id)]}
        response = await turn(client, "the quillmark question", **asked)
        assert text_of(response) == "the moonstone answer"
        requests = await model.requests()
    assert "zebrafish valve" in tool_results(requests[-1])[0]["content"]


@TRANSPORTS
async def test_nothing_travels_in_clear(
    launch: Launch, tmp_path: Path, secured: Secured, recorder: Recorder, over_http: bool
):
    pair = start_pair(launch, tmp_path / "pair", secured.options(over_http=over_http, reach=recorder))
    async with users_client(pair, "ann", secured.authority) as client:
        await tell_secrets(pair, client)
    assert len(recorder.seen) > 5_000
    for secret in (*SECRETS, SERVICE_TOKEN, "authorization", "kb_"):
        assert secret.encode() not in recorder.seen


async def test_the_recorder_would_see_what_travels_in_clear(launch: Launch, tmp_path: Path, recorder: Recorder):
    pair = start_pair(launch, tmp_path / "pair", PairOptions(over_http=True, reach=recorder.before))
    headers = {"Authorization": f"Bearer {pair.key('ann')}"}
    async with httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:
        await tell_secrets(pair, client)
    for secret in (*SECRETS, SERVICE_TOKEN):
        assert secret.encode() in recorder.seen


@TRANSPORTS
async def test_certificates_and_authorities_are_exchanged_under_running_streams(
    launch: Launch, tmp_path: Path, secured: Secured, over_http: bool
):
    pair = start_pair(launch, tmp_path / "pair", secured.options(over_http=over_http))
    old, new = secured.authority, Authority("the next authority")
    async with users_client(pair, "ann", old, new) as client, FakeModelControl(pair.model_url) as model:
        await model.script(Reply(text=("be", "fore", " and", " after"), hold_after=2))
        body = {"input": "Go on", "stream": True}
        async with client.stream("POST", "/v1/responses", json=body) as answer:
            events = live_events(answer)
            said = [await next_delta(events)]
            for authority, *trusted in ((old, old, new), (new, old, new), (new, new)):
                secured.exchange(authority, *trusted)
                await model.script(Reply(text=("meanwhile",)))
                async with users_client(pair, "eve", old, new) as other:
                    assert text_of(await turn(other, "Hi")) == "meanwhile"
            await model.release()
            said += [event["delta"] async for event in events if event["type"] == "response.output_text.delta"]
        assert "".join(said) == "before and after"
    for service, secret in ((pair.backend, secured.backend), (pair.chat_shell, secured.chat_shell)):
        shown = shown_certificate(port_of(service), new)
        assert shown == ssl.PEM_cert_to_DER_cert(secret.certificate.read_text())
        assert "Certificates read" in log_of(service)


def port_of(service: RunningService) -> int:
    return httpx2.URL(service.ready_url).port or 0


def log_of(service: RunningService) -> str:
    return service.spec.log_path.read_text(encoding="utf-8")


def shown_certificate(port: int, authority: Authority) -> bytes | None:
    """Connect anew, and return what the server shows."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        return connection.getpeercert(binary_form=True)


def call(url: str, authority: Authority, shown: MountedSecret | None, path: str) -> httpx2.Response:
    """Call as the other service would."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    headers = {"Authorization": f"Bearer {SERVICE_TOKEN}"}
    with httpx2.Client(verify=context, trust_env=False, headers=headers) as client:
        return client.post(f"{url}{path}", json={})


WAYS = (("/internal/v1/knowledge/search", "backend"), ("/v1/responses", "chat_shell"))


@pytest.mark.parametrize(("path", "name"), WAYS, ids=["backend", "chat_shell"])
def test_who_shows_no_certificate_or_a_wrong_one_is_refused(
    launch: Launch, tmp_path: Path, secured: Secured, path: str, name: str
):
    pair = start_pair(launch, tmp_path / "pair", secured.options(over_http=True))
    url, service = {
        "backend": (pair.backend_url, pair.backend),
        "chat_shell": (pair.chat_shell_http_url, pair.chat_shell),
    }[name]
    good = MountedSecret(tmp_path / "good", secured.authority.issue("x.example.com"), b"")
    assert call(url, secured.authority, good, path).status_code == 400  # it is in, and its body is wrong
    nobody = call(url, secured.authority, None, path)
    assert nobody.status_code == 401
    assert "client certificate" in nobody.json()["error"]["message"]
    wrong = {
        "stranger": (Authority("a stranger").issue(), "unable to get local issuer certificate"),
        "late": (secured.authority.issue(until=-DAY / 2), "certificate has expired"),
    }
    for folder, (issued, reason) in wrong.items():
        with pytest.raises(httpx2.TransportError):
            call(url, secured.authority, MountedSecret(tmp_path / folder, issued, b""), path)
        assert reason in log_of(service)
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{port_of(service)}/healthz", trust_env=False)
    assert "TLS connection refused" in log_of(service)
    assert call(url, secured.authority, good, path).status_code == 400


WRONG_SERVERS: dict[str, Callable[[Authority], Issued]] = {
    "another authority": lambda authority: Authority("a stranger").issue(),
    "expired": lambda authority: authority.issue(until=-timedelta(hours=1)),
    "another name": lambda authority: authority.issue("elsewhere.example.com"),
}


@TRANSPORTS
@pytest.mark.parametrize("wrong", first_of(*WRONG_SERVERS))
async def test_a_chat_shell_with_a_wrong_certificate_gets_no_turn(
    launch: Launch, tmp_path: Path, secured: Secured, over_http: bool, wrong: str
):
    issued = WRONG_SERVERS[wrong](secured.authority)
    secured.chat_shell.write(issued, secured.authority.certificate)
    pair = start_pair(launch, tmp_path / "pair", secured.options(over_http=over_http))
    async with users_client(pair, "ann", secured.authority) as client, FakeModelControl(pair.model_url) as model:
        answer = await client.post("/v1/responses", json={"input": "the quillmark question"})
        assert answer.status_code == 503
        assert await model.requests() == []
        assert "TLS connection refused" in log_of(pair.backend)
        # as soon as the right one is there, it is in use
        secured.chat_shell.write(secured.authority.issue(), secured.authority.certificate)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await client.post("/v1/responses", json={"input": "Hi"})).status_code == 503:
                """The client's channel tries again after a pause of its own."""


@TRANSPORTS
async def test_a_backend_with_a_wrong_certificate_gets_no_turn_out_of_chat_shell(
    launch: Launch, tmp_path: Path, secured: Secured, over_http: bool
):
    stranger = Authority("a stranger")
    secured.backend.write(stranger.issue(), secured.authority.certificate)
    pair = start_pair(launch, tmp_path / "pair", secured.options(over_http=over_http))
    async with users_client(pair, "ann", stranger) as client:
        answer = await client.post("/v1/responses", json={"input": "the quillmark question"})
    assert answer.status_code == 503
    log = log_of(pair.chat_shell)
    assert "unable to get local issuer certificate" in log
    assert "quillmark" not in log + log_of(pair.backend)


def test_unusable_files_stop_the_start_in_one_line(launch: Launch, tmp_path: Path, secured: Secured):
    other = secured.authority.issue()
    mixed = MountedSecret(tmp_path / "mixed", Issued(other.certificate, secured.authority.issue().key), other.key)
    settings = {
        **mixed.settings("BACKEND"),
        "BACKEND_CHAT_SHELL_URL": f"grpcs://127.0.0.1:{free_port()}",
        "BACKEND_SECRET": "secret-of-the-tests",
        "SERVICE_TOKEN": SERVICE_TOKEN,
    }
    service = launch("backend", settings=settings)
    assert service.wait_or_kill(PATIENCE_SECONDS) == 2
    assert log_of(service).startswith("BACKEND_TLS_*: ")
    assert "KEY_VALUES_MISMATCH" in log_of(service)


def test_unusable_files_at_run_time_leave_those_from_before_in_use(launch: Launch, tmp_path: Path, secured: Secured):
    tls = {**secured.backend.settings("BACKEND"), "BACKEND_CHAT_SHELL_URL": f"grpcs://127.0.0.1:{free_port()}"}
    backend = lone_backend(launch, tmp_path / "lone", **tls).backend
    before = shown_certificate(port_of(backend), secured.authority)
    secured.backend.write(Issued(b"no certificate", b"no key"), b"")
    assert shown_certificate(port_of(backend), secured.authority) == before
    assert "Certificates unusable" in log_of(backend)
    secured.exchange(secured.authority, secured.authority)
    assert shown_certificate(port_of(backend), secured.authority) != before
