"""`ballast doctor` names what is broken and its mend, seen from outside."""

import socket
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from cli.app import run_command
from cli.commands.doctor import services_beside
from tests.fakes.ballast_api import KEY, FakeBallast, Handler, answer, refusal, stream
from tests.unit.cli.conftest import Command

DATE = {"date": "Wed, 25 Nov 2026 12:00:00 GMT"}
EMBEDDER = "There is no embedding model 'ballast-doctor'; use 'e5'."
NO_EMBEDDER = "This server makes no embeddings: its operator sets one with BACKEND_EMBEDDING_BASE_URL and others."


def always(given: httpx2.Response) -> Handler:
    return lambda _, __: given


def nobody(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("refused", request=request)


def failed(kind: str, message: str = "It failed.") -> httpx2.Response:
    response = {"id": "resp_1", "status": "failed", "error": {"type": kind, "message": message}}
    return stream({"type": "response.failed", "sequence_number": 1, "response": response})


@pytest.fixture
def well(backend: FakeBallast) -> FakeBallast:
    """A backend with nothing broken, and without an embedder."""
    backend.open = ("/healthz", "/readyz")
    backend.on("GET /healthz", always(answer({"status": "ok"})))
    backend.on("GET /readyz", always(answer({"components": {"database": "ok", "event_store": "ok"}})))
    backend.on("GET /v1/models", always(answer({"data": [{"id": "demo-model"}]})))
    completed = {"type": "response.completed", "sequence_number": 1, "response": {"status": "completed", "error": None}}
    backend.on("POST /v1/responses", always(stream(completed)))
    backend.on("POST /v1/embeddings", always(refusal(404, NO_EMBEDDER)))
    return backend


def test_what_is_well_is_said(command: Command, well: FakeBallast) -> None:
    ran = command("doctor", "--json")
    assert ran.exit_code == 0
    parts = {part["part"]: part["found"] for part in ran.lines_of_json}
    assert list(parts) == ["backend", "clock", "database", "event store", "key", "chat_shell", "model", "embedder"]
    assert parts["chat_shell"] == "It offers demo-model."
    assert parts["embedder"] == "None is set: searches are by words."


def test_clocks_that_differ_by_less_than_a_header_tells_have_the_same_time(command: Command, well: FakeBallast) -> None:
    now = format_datetime(datetime.now(UTC), usegmt=True)
    well.on("GET /healthz", always(httpx2.Response(200, json={"status": "ok"}, headers={"date": now})))
    assert "This machine and the backend have the same time." in command("doctor").out


def test_the_model_is_left_in_peace_on_request(command: Command, well: FakeBallast) -> None:
    assert command("doctor", "--no-model").exit_code == 0
    assert "POST /v1/responses" not in well.calls


BROKEN: list[tuple[str, httpx2.Response, str, str]] = [
    ("GET /healthz", httpx2.Response(200, html="<p>Hello"), "no backend of Ballast", "set BALLAST_URL"),
    ("GET /healthz", answer({"detail": "Not Found"}, 404), "answers 404", "another program has this port"),
    ("GET /healthz", httpx2.Response(200, json={"status": "ok"}, headers=DATE), "differ by", "NTP"),
    ("GET /readyz", answer({"components": {"database": "away"}}, 503), "database: It is away", "PostgreSQL runs"),
    ("GET /readyz", answer({"components": {"event_store": "away"}}), "event store: It is away", "Redis runs"),
    ("GET /v1/models", refusal(503, "The model runner cannot be reached."), "cannot be reached", "start chat_shell"),
    ("GET /v1/models", refusal(500, "The model runner refuses this service's token."), "refuses", "SERVICE_TOKEN"),
    ("GET /v1/knowledge_bases", refusal(500, "It broke.", "server_error"), "key: It broke.", "again later"),
    ("POST /v1/responses", failed("ModelUnavailable"), "model: It failed.", "CHAT_SHELL_MODEL_BASE_URL"),
    ("POST /v1/responses", failed("ModelAuthenticationFailed"), "model: It", "CHAT_SHELL_MODEL_API_KEY"),
    ("POST /v1/responses", failed("ModelUnknownToProvider"), "model: It", "correct CHAT_SHELL_MODEL"),
    ("POST /v1/responses", failed("ModelQuotaExhausted"), "model: It", "pay the provider"),
    ("POST /v1/responses", failed("SomethingElse"), "model: It", "see chat_shell's log"),
]


@pytest.mark.parametrize(("call", "given", "found", "mend"), BROKEN)
def test_a_broken_part_and_its_mend_are_named(
    command: Command, well: FakeBallast, call: str, given: httpx2.Response, found: str, mend: str
) -> None:
    well.on(call, always(given))
    ran = command("doctor")
    assert ran.exit_code == 1
    (broken,) = [line for line in ran.out.splitlines() if line.startswith("broken")]
    assert found in broken
    assert mend in ran.out.partition("What to do: ")[2]
    assert "ballast doctor" not in ran.out


def test_a_wrong_key_is_named(command: Command, well: FakeBallast) -> None:
    ran = command("doctor", BALLAST_KEY="wrong")
    assert ran.exit_code == 1
    assert "broken  key: This API key is not valid." in ran.out
    assert "export BALLAST_KEY=" in ran.out


def test_an_embedder_that_is_away_is_named(command: Command, well: FakeBallast) -> None:
    asked: list[Any] = []

    def embeddings(_request: httpx2.Request, _match: object) -> httpx2.Response:
        asked.append(well.bodies[-1]["model"])
        return refusal(404, EMBEDDER) if len(asked) == 1 else refusal(503, "The embedder cannot be reached.")

    well.on("POST /v1/embeddings", embeddings)
    ran = command("doctor")
    assert asked == ["ballast-doctor", "e5"]
    assert "broken  embedder: The embedder cannot be reached." in ran.out
    assert "BACKEND_EMBEDDING_" in ran.out


@pytest.mark.parametrize(
    ("url", "exit_code", "said"),
    [
        ("https://nobody.invalid:1/v1", 1, "https://nobody.invalid:1 cannot be reached: nobody listens there"),
        ("ftp://x", 2, "BALLAST_URL: must be an http or https address"),
        ("http://ann:secret@x", 2, "BALLAST_URL: must hold neither credentials"),
    ],
)
def test_a_wrong_address_is_named(url: str, exit_code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"BALLAST_URL": url, "BALLAST_KEY": KEY}
    assert run_command(("doctor",), environ, httpx2.MockTransport(nobody)) == exit_code
    written = capsys.readouterr()
    assert said in written.out + written.err
    assert "ballast doctor" not in written.out + written.err
    assert "secret" not in written.out + written.err


def test_a_name_that_nobody_has_is_told_from_a_machine_where_nobody_listens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def unknown(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("failed", request=request) from socket.gaierror(-2, "Name or service not known")

    environ = {"BALLAST_URL": "http://no.such.host", "BALLAST_KEY": KEY}
    assert run_command(("bases", "list"), environ, httpx2.MockTransport(unknown)) == 3
    assert "http://no.such.host cannot be reached: no machine of this name is known" in capsys.readouterr().err


def test_other_commands_name_the_doctor_where_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(("bases", "list"), {"BALLAST_KEY": KEY}, httpx2.MockTransport(nobody)) == 3
    assert capsys.readouterr().err.endswith("`ballast doctor` says what is broken\n")


def test_the_address_that_make_run_prints_is_no_setting_of_a_service_beside() -> None:
    assert services_beside({"BACKEND_URL": "http://127.0.0.1:8000"}) == []
    assert services_beside({"BACKEND_URL": "http://127.0.0.1:8000", "BACKEND_PORT": "9000"}) == ["backend"]
