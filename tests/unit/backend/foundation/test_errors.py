"""Every error class has a status, and every error leaves in OpenAI's shape."""

from collections.abc import Iterator

import orjson
import pytest
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from structlog.testing import capture_logs

from backend.foundation.http.errors import error_response, install_error_handlers, mark_turn_begun, status_of
from shared import errors
from tests.fakes.http_api import FakeHouse, client_of

EXPECTED = {
    "BallastError": 500,
    "InvalidRequest": 400,
    "UnsupportedValue": 400,
    "KeyReused": 422,
    "PayloadTooLarge": 413,
    "ContextTooLong": 400,
    "Unauthenticated": 401,
    "PermissionDenied": 403,
    "NotFound": 404,
    "UnknownModel": 404,
    "Conflict": 409,
    "KeyHeld": 409,
    "TurnRunning": 409,
    "NoLongerWaiting": 409,
    "TurnTaken": 409,
    "MethodNotAllowed": 405,
    "TooManyRequests": 429,
    "Unavailable": 503,
    "Draining": 503,
    "EventsLost": 503,
    "ChatShellUnavailable": 503,
    "ChatShellSilent": 503,
    "DeadlineExceeded": 504,
    "CorruptRecord": 500,
    "InternalError": 500,
    "ModelError": 502,
    "ModelUnavailable": 502,
    "ModelRateLimited": 429,
    "ModelQuotaExhausted": 429,
    "ModelAuthenticationFailed": 502,
    "ModelUnknownToProvider": 502,
    "ModelRequestRejected": 400,
    "ModelContextOverflow": 400,
    "ModelContentFiltered": 400,
    "ModelStalled": 504,
    "ModelStreamCut": 502,
    "ModelProtocolViolated": 502,
}


def _tree(root: type[errors.BallastError]) -> Iterator[type[errors.BallastError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


def test_every_class_of_the_tree_has_its_status() -> None:
    of_shared = [found for found in _tree(errors.BallastError) if found.__module__ == errors.__name__]
    assert {found.__name__: status_of(found)[0] for found in of_shared} == EXPECTED


def test_the_body_has_the_four_keys() -> None:
    response = error_response(errors.InvalidRequest("No.", param="input[2].content"))
    assert orjson.loads(response.body) == {
        "error": {
            "message": "input[2].content: No.",
            "type": "invalid_request_error",
            "param": "input[2].content",
            "code": "invalid_request",
        }
    }


@pytest.mark.parametrize("error", [errors.TurnRunning("x"), errors.ModelUnavailable("x"), errors.ModelRateLimited("x")])
def test_an_error_behind_a_turn_is_never_repeated(error: errors.BallastError) -> None:
    assert error_response(error).headers["x-should-retry"] == "false"


def test_other_errors_leave_the_choice_to_the_client() -> None:
    assert "x-should-retry" not in error_response(errors.Unavailable("x")).headers
    assert error_response(errors.Unavailable("x"), turn_begun=True).headers["x-should-retry"] == "false"


def test_retry_after_is_whole_seconds_rounded_up() -> None:
    response = error_response(errors.Unavailable("x", retry_after_seconds=0.3))
    assert response.headers["retry-after"] == "1"
    assert "retry-after" not in error_response(errors.InternalError("x")).headers


@pytest.mark.parametrize("kind", [found for found in _tree(errors.BallastError) if status_of(found)[0] in (429, 503)])
def test_who_is_asked_to_come_later_is_told_when(kind: type[errors.BallastError]) -> None:
    assert int(error_response(kind("x")).headers["retry-after"]) >= 1


def test_a_conflict_that_waiting_ends_says_how_long_to_wait_and_that_a_client_must_not_repeat_by_itself() -> None:
    headers = error_response(errors.TurnRunning("x")).headers
    assert (headers["retry-after"], headers["x-should-retry"]) == ("1", "false")
    assert "retry-after" not in error_response(errors.Conflict("x")).headers


async def test_what_nobody_expected_is_a_500_that_tells_nothing(house: FakeHouse) -> None:
    app = house.app()

    @app.get("/breaks")
    async def breaks(request: Request) -> None:
        mark_turn_begun(request)
        raise KeyError("password=hunter2")

    with capture_logs() as lines:
        async with client_of(app) as client:
            answer = await client.get("/breaks")
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"
    assert "hunter2" not in answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert "x-request-id" in answer.headers
    logged = next(line for line in lines if line["event"] == "Unexpected error")
    assert (logged["log_level"], logged["route"], logged["causes"]) == ("error", "/breaks", ["KeyError"])
    assert logged["raised_at"][-1].startswith("test_errors.py:")
    assert "hunter2" not in str(lines)


async def test_the_router_speaks_the_same_shape(app: FastAPI) -> None:
    async with client_of(app) as client:
        nowhere = await client.get("/v1/nowhere")
        wrong_method = await client.put("/v1/conversations")
        several = await client.put("/v1/conversations/conv_1")
    assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (404, "not_found")
    assert (wrong_method.status_code, wrong_method.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong_method.headers["allow"] == "GET, POST"
    assert several.headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize(
    "loc", [("query", "include[]"), ("query", "include[]", 1), ("path", "include[]", "a-tag"), ("header", "include[]")]
)
async def test_fields_outside_the_body_are_named_as_they_were_written(loc: tuple[str | int, ...]) -> None:
    app = FastAPI()
    install_error_handlers(app)

    @app.get("/wrong")
    async def wrong() -> None:
        raise RequestValidationError([{"type": "value_error", "loc": loc, "msg": "No number"}], body={"a": 1})

    async with client_of(app) as client:
        answer = await client.get("/wrong")
    error = answer.json()["error"]
    assert (error["param"], error["message"]) == ("include[]", "include[]: no number.")
