"""What only the HTTP server has: bodies and errors in OpenAI's shape, frames, heartbeats, health, metrics."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from shared.errors import UnknownModel
from shared.models.events import FunctionCallDelta, ModelCard
from shared.models.execution import ExecutionRequest
from shared.models.openai_converter import OpenAIRequestConverter
from tests.fakes.chat_shell_events import FINISHED, WHOLE_TURN
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import ScriptedRunner, failing_after, saying, waiting_after
from tests.fakes.chat_shell_servers import MAX_BYTES, SERVICE_TOKEN, Shell, serve_http, shell_with

AUTHORIZED = {"authorization": f"Bearer {SERVICE_TOKEN}"}
Body = dict[str, Any]


@asynccontextmanager
async def session_to(
    shell: Shell, heartbeat_seconds: float = 15.0, headers: dict[str, str] = AUTHORIZED
) -> AsyncGenerator[aiohttp.ClientSession]:
    async with (
        serve_http(shell, heartbeat_seconds=heartbeat_seconds) as address,
        aiohttp.ClientSession(address, headers=headers) as session,
    ):
        yield session


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.text)["error"]


async def ask(session: aiohttp.ClientSession, method: str, path: str, **content: Any) -> Answer:
    async with session.request(method, path, **content) as response:
        return Answer(response.status, response.headers, await response.text())


async def answer_of(
    shell: Shell, method: str, path: str, headers: dict[str, str] = AUTHORIZED, **content: Any
) -> Answer:
    async with session_to(shell, headers=headers) as session:
        return await ask(session, method, path, **content)


def quiet_shell() -> Shell:
    return shell_with(ScriptedRunner(saying(FINISHED)))


def full_body() -> Body:
    return OpenAIRequestConverter.from_execution_request(full_request())


async def test_a_stream_is_one_frame_an_event_and_done():
    shell = shell_with(ScriptedRunner(saying(*WHOLE_TURN)))
    answer = await answer_of(shell, "POST", "/v1/responses", json=full_body())
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    *frames, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    assert frames == [f"event: {event.type}\ndata: {event.model_dump_json()}" for event in WHOLE_TURN]


async def test_a_caller_that_does_not_know_pieces_of_calls_gets_none():
    piece = FunctionCallDelta(call_id="c", name="weather", arguments="{")
    shell = shell_with(ScriptedRunner(saying(WHOLE_TURN[0], piece, FINISHED)))
    answer = await answer_of(shell, "POST", "/v1/responses", json=full_body())
    assert [line for line in answer.text.splitlines() if line.startswith("event: ")] == [
        "event: model_call_started",
        "event: turn_finished",
    ]


async def test_silence_is_filled_with_comments():
    speak = asyncio.Event()

    async def silent(_request: ExecutionRequest) -> AsyncGenerator[Any]:
        yield WHOLE_TURN[0]
        await speak.wait()
        yield FINISHED

    async with (
        session_to(shell_with(ScriptedRunner(silent)), heartbeat_seconds=0.02) as session,
        session.post("/v1/responses", json=full_body()) as response,
    ):
        await response.content.readuntil(b": heartbeat\n\n")
        await response.content.readuntil(b": heartbeat\n\n")
        speak.set()
        rest = await response.text()
    assert rest.endswith(f"data: {FINISHED.model_dump_json()}\n\ndata: [DONE]\n\n")


async def test_a_client_that_leaves_closes_the_runner():
    shell = shell_with(ScriptedRunner(waiting_after(WHOLE_TURN[0])))
    async with session_to(shell) as session:
        async with session.post("/v1/responses", json=full_body()) as response:
            await response.content.readuntil(b"\n\n")
            assert shell.runner.live == 1
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()
    assert shell.runner.live == 0


@pytest.mark.parametrize("headers", [{}, {"authorization": SERVICE_TOKEN}, {"authorization": "Bearer wrong"}])
async def test_a_call_without_the_service_token_is_unauthenticated(headers: dict[str, str]):
    shell = quiet_shell()
    async with session_to(shell, headers=headers) as session:
        turn = await ask(session, "POST", "/v1/responses", json=full_body())
        listing = await ask(session, "GET", "/v1/models")
    assert turn.status == listing.status == 401
    assert set(turn.error) == {"message", "type", "param", "code"}
    assert turn.error["code"] == "invalid_api_key"
    assert not shell.runner.requests


async def test_health_and_metrics_are_open():
    async with session_to(quiet_shell(), headers={}) as session:
        answers = [await ask(session, "GET", path) for path in ("/healthz", "/readyz", "/metrics")]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert "# HELP" in answers[-1].text


async def test_a_draining_server_is_alive_and_not_ready():
    shell = quiet_shell()
    shell.admission.close()
    async with session_to(shell) as session:
        health, readiness = [await ask(session, "GET", path) for path in ("/healthz", "/readyz")]
        turn = await ask(session, "POST", "/v1/responses", json=full_body())
    assert (health.status, readiness.status, turn.status) == (200, 503, 503)
    assert turn.headers["retry-after"] == "1"
    assert turn.error["type"] == "Draining"


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b'{"model": "\xff"}', None),
        (b'{"temperature": NaN}', None),
        (b'{"model": "\\ud800"}', "model"),
        (b'{"model": "m"}', "input"),
        (b"[" * 100_000, None),
    ],
)
async def test_a_malformed_body_is_a_400_that_names_the_field(raw: bytes, param: str | None):
    answer = await answer_of(quiet_shell(), "POST", "/v1/responses", data=raw)
    assert answer.status == 400
    assert (answer.error["type"], answer.error["param"]) == ("InvalidRequest", param)


async def test_a_wrong_value_is_a_400_that_names_the_field():
    body = full_body()
    body["metadata"]["epoch"] = "soon"
    answer = await answer_of(quiet_shell(), "POST", "/v1/responses", json=body)
    assert answer.status == 400
    assert answer.error["param"] == "metadata.epoch"


async def test_a_body_over_the_limit_is_a_413():
    shell = quiet_shell()
    body = json.dumps({**full_body(), "instructions": "x" * MAX_BYTES}).encode()

    async def pieces() -> AsyncGenerator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    answer = await answer_of(shell, "POST", "/v1/responses", data=pieces())
    assert answer.status == 413
    assert answer.error["code"] == "payload_too_large"
    assert not shell.runner.requests


async def test_what_is_refused_before_the_first_event_has_its_status():
    shell = shell_with(ScriptedRunner(failing_after(UnknownModel("No model of that name.", param="model"))))
    answer = await answer_of(shell, "POST", "/v1/responses", json=full_body())
    assert answer.status == 404
    assert answer.error == {
        "message": "No model of that name.",
        "type": "UnknownModel",
        "param": "model",
        "code": "model_not_found",
    }


async def test_models_have_openais_shape():
    answer = await answer_of(quiet_shell(), "GET", "/v1/models")
    listing = json.loads(answer.text)
    assert listing == {
        "object": "list",
        "data": [
            {
                "id": "demo-model",
                "object": "model",
                "created": 0,
                "owned_by": "ballast",
                "context_window_tokens": 128_000,
                "max_output_tokens": 4_096,
                "extra_parameters": [],
            },
            {
                "id": "vendor/large",
                "object": "model",
                "created": 0,
                "owned_by": "ballast",
                "context_window_tokens": 1_000_000,
                "max_output_tokens": 64_000,
                "extra_parameters": ["top_k", "x"],
            },
        ],
    }


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/nothing", 404), ("GET", "/v1/responses", 405), ("PUT", "/healthz", 405)]
)
async def test_a_wrong_path_or_method_is_an_error_in_openais_shape(method: str, path: str, status: int):
    answer = await answer_of(quiet_shell(), method, path)
    assert answer.status == status
    assert set(answer.error) == {"message", "type", "param", "code"}


async def test_a_defect_is_logged_and_its_text_is_not_sent():
    def broken_list() -> tuple[ModelCard, ...]:
        raise ZeroDivisionError("secret")

    shell = shell_with(ScriptedRunner(saying(FINISHED)), broken_list)
    with capture_logs() as logs:
        answer = await answer_of(shell, "GET", "/v1/models")
    assert answer.status == 500
    assert answer.error["type"] == "InternalError"
    assert "secret" not in answer.text
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)
