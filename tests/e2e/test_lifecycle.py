"""Starting, stopping and starting again: what an operator and an orchestrator see."""

import asyncio
import re
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import grpc.aio
import httpx2
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from backend.migrations.compatibility import newest_revision
from tests.e2e.chat_shell_calls import plain_request, through_grpc, through_http
from tests.e2e.half_turns import HALF, half_a_turn
from tests.e2e.pair import ADMIN_KEY, SECRET, SERVICE_TOKEN, Pair, PairOptions, lone_backend, start_pair
from tests.e2e.turns import bare_client, messages_in, new_conversation, text_of, turn
from tests.examples import first_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch, RunningService, http_status

APP = "https://app.example.com"
SHANGHAI = PairOptions(backend={"BACKEND_TIME_ZONE": "Asia/Shanghai", "BACKEND_CORS_ORIGINS": APP})


@pytest.fixture(scope="module")
def mortal_pair(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A small pair whose services a test may stop, and starts again."""
    return start_pair(launch_for_module, tmp_path_factory.mktemp("stopped"), SHANGHAI)


@pytest.fixture
async def mortal_model(mortal_pair: Pair) -> AsyncIterator[FakeModelControl]:
    async with mortal_pair.fresh_model() as control:
        yield control


async def test_a_browser_app_of_an_allowed_origin_streams_a_turn_and_reads_errors(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    await mortal_model.script(Reply(text=("Hello.",)))
    async with bare_client(mortal_pair, "browser") as client:
        asked = {"origin": APP, "access-control-request-method": "POST", "access-control-request-headers": "x-new"}
        async with httpx2.AsyncClient(base_url=client.base_url, verify=False) as keyless:
            preflight = await keyless.options("/v1/responses", headers=asked)
            refused = await keyless.post("/v1/responses", headers={"origin": APP}, json={"input": "Hi"})
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, APP)
        assert preflight.headers["access-control-allow-headers"] == "x-new"
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, APP)
        answer = await client.post("/v1/responses", headers={"origin": APP}, json={"input": "Hi", "stream": True})
        assert answer.headers["access-control-allow-origin"] == APP
        assert "x-ballast-response-id" in answer.headers["access-control-expose-headers"]
        assert answer.text.endswith("[DONE]\n\n")


async def test_a_draining_backend_finishes_its_turns_and_takes_no_more(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    backend = mortal_pair.backend
    await mortal_model.script(HALF, Reply(text=("Again.",)))
    async with bare_client(mortal_pair, "drain") as client:
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half:
            backend.send(signal.SIGTERM)
            # Each asks over a connection of its own: idle ones are closed at the signal.
            while await asyncio.to_thread(http_status, f"{mortal_pair.backend_url}/readyz") != 503:
                continue
            assert (await client.get("/healthz")).status_code == 200
            refused = await client.post("/v1/responses", json={"input": "More"})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["error"]["code"] == "server_error"
            assert (await client.get(half.path)).json()["status"] == "in_progress"
            await mortal_model.release()
            rest = [event async for event in half.rest]
        assert await asyncio.to_thread(backend.wait_or_kill, 60) == 0
        assert rest[-1]["type"] == "response.completed"
        assert text_of(rest[-1]["response"]) == "Half an answer"

        backend.start()
        await asyncio.to_thread(backend.wait_ready)
        assert (await client.get(half.path)).json() == rest[-1]["response"]
        await turn(client, "Again?", conversation=conversation)
    assert "Traceback" not in backend.log()
    sent = messages_in((await mortal_model.requests())[-1])
    assert sent[-2] == {"role": "assistant", "content": "Half an answer"}
    assert sent[-1]["content"].endswith(" Asia/Shanghai</time>")


async def test_a_draining_chat_shell_finishes_its_turns_and_takes_no_more(
    mortal_pair: Pair, mortal_model: FakeModelControl
) -> None:
    chat_shell = mortal_pair.chat_shell
    await mortal_model.script(HALF, Reply(text=("Again.",)))
    async with bare_client(mortal_pair, "drain") as client:
        conversation = await new_conversation(client)
        async with half_a_turn(client, conversation) as half:
            chat_shell.send(signal.SIGTERM)
            while await asyncio.to_thread(http_status, f"{mortal_pair.chat_shell_http_url}/readyz") != 503:
                continue
            assert await health_of(mortal_pair) == health_pb2.HealthCheckResponse.NOT_SERVING
            for server in (through_grpc, through_http):
                assert (await server(mortal_pair, plain_request())).refusal == ("Draining", None)
            await mortal_model.release()
            rest = [event async for event in half.rest]
        assert await asyncio.to_thread(chat_shell.wait_or_kill, 60) == 0
        assert text_of(rest[-1]["response"]) == "Half an answer"

        chat_shell.start()
        await asyncio.to_thread(chat_shell.wait_ready)
        while (await client.get("/v1/models")).status_code != 200:
            continue
        assert text_of(await turn(client, "Again?", conversation=conversation)) == "Again."
    assert "Traceback" not in chat_shell.log()


async def health_of(pair: Pair) -> int:
    async with grpc.aio.insecure_channel(pair.chat_shell_grpc_target) as channel:
        stub = cast(Any, health_pb2_grpc).HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service="execution.v1.ChatShell"), timeout=60)
    return cast(int, answer.status)


def test_a_first_run_makes_an_admin_key_and_later_ones_keep_it(launch: Launch, tmp_path: Path) -> None:
    """Secrets come from files, the schema from `migrate`."""
    for name, text in (("secret", SECRET), ("token", f"{SERVICE_TOKEN}\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = {
        "BACKEND_ADMIN_KEY": "",
        "BACKEND_SECRET": "",
        "BACKEND_SECRET_FILE": str(tmp_path / "secret"),
        "SERVICE_TOKEN": "",
        "SERVICE_TOKEN_FILE": str(tmp_path / "token"),
    }
    migration = launch("backend", "migrate", settings=settings, directory=tmp_path)
    assert migration.wait_or_kill(PATIENCE_SECONDS) == 0, migration.log()
    with closing(sqlite3.connect(tmp_path / "var" / "ballast.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"conversation", "log_entry", "response", "api_key"} <= tables

    backend = lone_backend(launch, tmp_path, **settings)
    printed = re.findall(r"^BACKEND_ADMIN_KEY=(\S+)$", backend.backend.log(), re.MULTILINE)
    assert len(printed) == 1
    assert keys_seen_by(backend, printed[0]) == 1
    assert backend.backend.stop() == 0
    backend.backend.start()
    backend.backend.wait_ready()
    assert backend.backend.log().count(printed[0]) == 1
    assert keys_seen_by(backend, printed[0]) == 1
    answer = httpx2.post(
        f"{backend.backend_url}/internal/v1/knowledge/search",
        json={"ticket": "forged", "query": "x"},
        headers={"authorization": f"Bearer {SERVICE_TOKEN}"},
        timeout=60,
        trust_env=False,
    )
    assert "ticket" in answer.json()["error"]["message"]
    assert backend.backend.stop(number=signal.SIGINT) == 0


def keys_seen_by(pair: Pair, admin_key: str) -> int:
    with pair.http(admin_key) as admin:
        answer = admin.get("/v1/api_keys")
    assert answer.status_code == 200, answer.text
    return len(answer.json()["data"])


BACKEND_NEEDS = {"BACKEND_SECRET": SECRET, "SERVICE_TOKEN": SERVICE_TOKEN, "BACKEND_ADMIN_KEY": ADMIN_KEY}
PASSWORD = "password-of-a-server"
AWAY = {**BACKEND_NEEDS, "BACKEND_DATABASE_URL": f"postgresql+asyncpg://ann:{PASSWORD}@127.0.0.1:{{nobody}}/b"}
WRONG_TRACES = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "zipkin"}
FOREIGN_ADDRESS = "192.0.2.1"
"""Kept for examples, so that no machine has it."""

NEWER_SCHEMA = "sqlite+aiosqlite:///{newer}"
NEWER_SCHEMA_COMPLAINT = (
    f"BACKEND_DATABASE_URL: the database's schema 9999 takes a release that knows schema 9999, and this release knows"
    f" schemas up to {newest_revision()}"
)
AWAY_COMPLAINT = "BACKEND_DATABASE_URL: cannot use postgresql+asyncpg://127.0.0.1:{nobody}/b (ConnectionRefusedError)"
WRONG: list[tuple[str, dict[str, str], str]] = [
    ("backend", {"SERVICE_TOKEN": SERVICE_TOKEN}, "BACKEND_SECRET: "),
    (
        "backend migrat",
        BACKEND_NEEDS,
        "usage: python -m backend [serve|check|migrate|reindex|reread|downgrade <revision>|move-tenant <tenant> --to <",
    ),
    ("backend", {**BACKEND_NEEDS, "BACKEND_PORT": "{taken}"}, "BACKEND_PORT: cannot listen on 127.0.0.1:{taken}"),
    ("backend", {**BACKEND_NEEDS, "BACKEND_HOST": "{foreign}"}, "BACKEND_HOST: cannot listen on {foreign}:"),
    (
        "chat_shell",
        {"SERVICE_TOKEN": SERVICE_TOKEN, "CHAT_SHELL_HOST": "{foreign}"},
        "CHAT_SHELL_HOST: cannot listen on {foreign}:",
    ),
    ("backend", {**BACKEND_NEEDS, **WRONG_TRACES}, "OTEL_TRACES_EXPORTER: must be otlp or none"),
    ("chat_shell", {"SERVICE_TOKEN": SERVICE_TOKEN, **WRONG_TRACES}, "OTEL_TRACES_EXPORTER: must be otlp or none"),
    ("backend", {**BACKEND_NEEDS, "SERVICE_TOKEN": "", "SERVICE_TOKEN_FILE": "/no/such"}, "SERVICE_TOKEN_FILE: "),
    ("backend", AWAY, AWAY_COMPLAINT),
    ("backend migrate", AWAY, AWAY_COMPLAINT),
    (
        "backend",
        {**BACKEND_NEEDS, "BACKEND_REDIS_URL": f"redis://:{PASSWORD}@127.0.0.1:{{nobody}}/0"},
        "BACKEND_REDIS_URL: cannot use redis://127.0.0.1:{nobody}/0 (ConnectionRefusedError)",
    ),
    (
        "chat_shell",
        {"SERVICE_TOKEN": SERVICE_TOKEN, "CHAT_SHELL_HTTP_PORT": "{taken}", "CHAT_SHELL_GRPC_PORT": "{free}"},
        "CHAT_SHELL_HTTP_PORT: cannot listen on 127.0.0.1:{taken}",
    ),
    (
        "chat_shell",
        {"SERVICE_TOKEN": SERVICE_TOKEN, "CHAT_SHELL_GRPC_PORT": "{taken}", "CHAT_SHELL_HTTP_PORT": "{free}"},
        "CHAT_SHELL_GRPC_PORT: cannot listen on 127.0.0.1:{taken}",
    ),
    ("chat_shell", {"SERVICE_TOKEN": SERVICE_TOKEN, "CHAT_SHELL_MODELS_FILE": "/no/such"}, "CHAT_SHELL_MODELS_FILE: "),
    ("chat_shell", {"SERVICE_TOKEN": "fifteen-letters"}, "SERVICE_TOKEN: must have at least 16 characters"),
    (
        "backend",
        {**BACKEND_NEEDS, "BACKEND_REDIS_URLL": "redis://127.0.0.1/0", "BACKEND_SERVICE_HOST": "10.96.0.1"},
        "BACKEND_REDIS_URLL: there is no such setting; did you mean BACKEND_REDIS_URL?",
    ),
    ("backend", {**BACKEND_NEEDS, "BACKEND_DATABASE_URL": NEWER_SCHEMA}, NEWER_SCHEMA_COMPLAINT),
    (
        "backend downgrade 9998",
        {**BACKEND_NEEDS, "BACKEND_DATABASE_URL": NEWER_SCHEMA},
        "downgrade: the database's schema",
    ),
]


def test_a_wrong_setting_stops_the_start_with_one_line_that_names_it(launch: Launch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        ports = {name: str(end.getsockname()[1]) for name, end in (("taken", occupied), ("nobody", silent))}
        ports["free"] = str(free_port())
        ports["foreign"] = FOREIGN_ADDRESS
        ports["newer"] = str(database_of_a_newer_release(tmp_path / "newer.db"))
        started: list[RunningService] = []
        for number, (command, settings, _) in enumerate(WRONG):
            directory = tmp_path / str(number)
            directory.mkdir()
            given = {name: value.format(**ports) for name, value in settings.items()}
            started.append(launch(*command.split(), settings=given, directory=directory))
        for service, (_, _, words) in zip(started, WRONG, strict=True):
            assert_stopped(service.wait_or_kill(PATIENCE_SECONDS), service.log(), words.format(**ports))


@pytest.mark.parametrize(
    "stopped",
    first_of(("chat_shell", "SERVICE_TOKEN: "), ("backend", "BACKEND_SECRET: ")),
    ids=["chat_shell", "backend"],
)
def test_a_process_ends_with_the_code_of_a_wrong_setting(
    launch_anew: Launch, tmp_path: Path, stopped: tuple[str, str]
) -> None:
    module, words = stopped
    settings = {"SERVICE_TOKEN": SERVICE_TOKEN if module == "backend" else "fifteen-letters"}
    service = launch_anew(module, settings=settings, directory=tmp_path)
    assert_stopped(service.wait_or_kill(PATIENCE_SECONDS), service.log(), words)


def assert_stopped(exit_code: int, log: str, words: str) -> None:
    assert exit_code == 2, log
    complaint = [line for line in log.splitlines() if not line.startswith("{")]
    assert len(complaint) == 1, log
    assert complaint[0].startswith(words)
    assert PASSWORD not in log


def database_of_a_newer_release(path: Path) -> Path:
    """Make a database from whose schema a newer release has taken something away."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        database.execute("INSERT INTO alembic_version VALUES ('9999')")
        database.commit()
    return path


async def test_a_database_that_lets_nobody_in_stops_the_start_with_one_line(
    launch: Launch, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.url("no_such_database").replace("@", f":{PASSWORD}@")
    backend = launch("backend", settings={**BACKEND_NEEDS, "BACKEND_DATABASE_URL": url}, directory=tmp_path)
    assert await asyncio.to_thread(backend.wait_or_kill, 60) == 2
    shown = f"127.0.0.1:{postgres_server.port}/no_such_database"
    (complaint,) = backend.log().splitlines()
    assert complaint == f"BACKEND_DATABASE_URL: cannot use postgresql+asyncpg://{shown} (InvalidCatalogNameError)"
