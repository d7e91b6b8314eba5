"""What scripts of other origins may ask, and read of answers, errors included."""

from dataclasses import replace

import httpx2
import pytest
from fastapi import FastAPI

from backend.foundation.http.app import create_app
from backend.routes import ROUTERS
from tests.fakes.http_api import FakeHouse, client_of

APP = "https://app.example.com"
OF_OPENAI = "authorization,content-type,idempotency-key,x-ballast-user,x-stainless-lang,x-stainless-retry-count"
ALLOWED = "access-control-allow-origin"
_HOUSE = FakeHouse(max_body_bytes=1024)


def open_to(*origins: str) -> FastAPI:
    app = create_app(ROUTERS, _HOUSE.services(), replace(_HOUSE.options(), cors_origins=origins))

    async def broken() -> None:
        raise RuntimeError("broken")

    app.add_api_route("/broken", broken)
    return app


@pytest.fixture(scope="module")
def open_app() -> FastAPI:
    return open_to(APP, "http://localhost:3000")


def asked(origin: str, method: str = "POST") -> dict[str, str]:
    return {
        "origin": origin,
        "access-control-request-method": method,
        "access-control-request-headers": OF_OPENAI,
    }


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_preflight_needs_no_key(open_app: FastAPI, method: str) -> None:
    async with client_of(open_app) as client:
        answer = await client.options("/v1/chat/completions", headers=asked(APP, method))
    assert (answer.status_code, answer.headers[ALLOWED]) == (200, APP)
    assert method in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == OF_OPENAI
    assert "access-control-allow-credentials" not in answer.headers
    assert "Origin" in answer.headers["vary"]


async def test_another_origin_is_refused(open_app: FastAPI) -> None:
    async with client_of(open_app) as client:
        answer = await client.options("/v1/responses", headers=asked("https://evil.example.com"))
        assert answer.status_code == 403
        assert answer.json()["error"]["param"] == "Origin"
        assert ALLOWED not in answer.headers
        plain = await client.get("/healthz", headers={"origin": "https://evil.example.com"})
        assert ALLOWED not in plain.headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/models", 401), ("POST", "/v1/conversations", 413), ("GET", "/nope", 404), ("GET", "/broken", 500)],
)
async def test_errors_can_be_read(open_app: FastAPI, method: str, path: str, status: int) -> None:
    async with client_of(open_app) as client:
        body = b"x" * 2000 if status == 413 else b""
        answer = await client.request(method, path, headers={"origin": APP}, content=body)
    assert (answer.status_code, answer.headers[ALLOWED]) == (status, APP)
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "x-ballast-response-id", "retry-after"} <= set(exposed)
    assert "x-request-id" in answer.headers


async def test_any_origin_may_be_allowed() -> None:
    async with client_of(open_to("*")) as client:
        assert (await client.options("/v1/models", headers=asked("https://x.example.com"))).headers[ALLOWED] == "*"
        assert (await client.get("/healthz", headers={"origin": "https://x.example.com"})).headers[ALLOWED] == "*"


async def test_without_the_setting_nothing_is_said(stranger: httpx2.AsyncClient) -> None:
    assert ALLOWED not in (await stranger.get("/healthz", headers={"origin": APP})).headers
    assert (await stranger.options("/v1/models", headers=asked(APP))).status_code == 405


async def test_a_script_reads_that_the_server_takes_nothing_now() -> None:
    house = FakeHouse(origins=(APP,))
    async with client_of(house.app(), await house.key()) as client:
        house.admission.close()
        for answer in (
            await client.get("/readyz", headers={"origin": APP}),
            await client.post("/v1/responses", json={"input": "Hi"}, headers={"origin": APP}),
        ):
            assert (answer.status_code, answer.headers[ALLOWED]) == (503, APP)
        assert "retry-after" in answer.headers["access-control-expose-headers"].lower()
