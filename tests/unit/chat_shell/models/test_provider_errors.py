"""What a provider's refusal means."""

from datetime import UTC, datetime

import orjson
import pytest

from chat_shell.models.transport.provider_errors import (
    error_of_frame,
    error_of_response,
    find_refused_field,
)
from shared.errors import (
    ModelAuthenticationFailed,
    ModelContextOverflow,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelRequestRejected,
    ModelUnavailable,
    ModelUnknownToProvider,
)
from shared.models.error_reports import report_of
from shared.models.values import JsonObject
from shared.retries import retry_after_seconds

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)


def body(message: str = "", code: str | int | None = None, kind: str | None = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": kind, "code": code}})


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (500, b"", ModelUnavailable),
        (503, b"<html>", ModelUnavailable),
        (529, body("overloaded"), ModelUnavailable),
        (408, b"", ModelUnavailable),
        (429, body("slow down"), ModelRateLimited),
        (429, b"", ModelRateLimited),
        (429, body(code="insufficient_quota"), ModelQuotaExhausted),
        (429, body("You exceeded your current quota, please check your plan"), ModelQuotaExhausted),
        (402, body("Insufficient Balance"), ModelQuotaExhausted),
        (401, body("wrong key"), ModelAuthenticationFailed),
        (403, b"", ModelAuthenticationFailed),
        (400, body("bad"), ModelRequestRejected),
        (404, b"not found", ModelUnknownToProvider),
        (403, body("no access", code="model_not_found"), ModelUnknownToProvider),
        (413, b"", ModelRequestRejected),
        (422, orjson.dumps({"detail": [{"msg": "field required"}]}), ModelRequestRejected),
        (302, b"", ModelProtocolViolated),
    ],
)
def test_status_to_class(status: int, content: bytes, kind: type[ModelError]):
    error = error_of_response(status, content)

    assert type(error) is kind
    assert str(status) in error.message


@pytest.mark.parametrize(
    "content",
    [
        body(code="context_length_exceeded"),
        body("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
        body("the request exceeds the available context size. try increasing it", kind="exceed_context_size_error"),
        body("The prompt (total length 5000) is longer than the maximum model length of 4096"),
        body("The input (70000 tokens) is longer than the model's context length (65536 tokens)."),
        body("prompt is too long: 210000 tokens > 200000 maximum"),
        body("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        body("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
        body("Please reduce the length of the messages or completion."),
        b"maximum context length",
        orjson.dumps([{"error": {"message": "exceeds the context window"}}]),
    ],
)
@pytest.mark.parametrize("status", [400, 413, 500])
def test_context_overflow_in_the_words_of_servers(status: int, content: bytes):
    assert type(error_of_response(status, content)) is ModelContextOverflow


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize(
    "content",
    [
        body("The model `gpt-9.9` does not exist or you do not have access to it.", code="model_not_found"),
        body("The model `vendor/big-7b` does not exist.", code=404, kind="NotFoundError"),
        body("model 'llama9:70b' not found"),
        orjson.dumps({"error": "model 'llama9' not found"}),
        body("Model Not Exist", code="invalid_request_error"),
        body("acme/gpt-9 is not a valid model ID", code=400),
        body("Invalid model: mistral-9", kind="invalid_model"),
    ],
)
def test_an_unknown_model_in_the_words_of_servers(status: int, content: bytes):
    assert type(error_of_response(status, content)) is ModelUnknownToProvider


@pytest.mark.parametrize(
    "message",
    ["temperature is not supported by this model", "The model said: tool_call_id 'x' not found", "No such image"],
)
def test_other_complaints_are_not_about_the_model(message: str):
    assert type(error_of_response(400, body(message))) is ModelRequestRejected


def test_an_unknown_model_inside_a_stream():
    assert type(error_of_frame({"error": {"type": "not_found_error", "message": "x"}})) is ModelUnknownToProvider


def test_a_rate_limit_that_speaks_of_quota_but_says_when_to_come_back():
    error = error_of_response(429, body("You exceeded your current quota"), 12.0)

    assert type(error) is ModelRateLimited
    assert error.retry_after_seconds == 12.0


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
def test_no_word_of_the_provider_gets_out(status: int):
    error = error_of_response(
        status, body("Incorrect key sk-secret-1 for https://inner.example/v1", code="sk-secret-1")
    )

    assert "secret" not in error.message
    assert "example" not in error.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Sun, 22 Nov 2026 08:30:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 08:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "999999999"}, 86_400.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None):
    assert retry_after_seconds(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "content", "field"),
    [
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        (422, '{"detail":[{"type":"extra_forbidden","loc":["body","prompt_cache_key"]}]}', "prompt_cache_key"),
        (400, "Unrecognized request argument supplied: stream_options", "stream_options"),
        (400, "max_tokens is too large: this model supports at most 4096", None),
        (400, "temperature is not supported with this model", None),
        (500, "Unsupported parameter: 'max_tokens'", None),
    ],
)
def test_refused_fields(status: int, content: str, field: str | None):
    fields = ("max_completion_tokens", "max_tokens", "prompt_cache_key", "stream_options")
    assert find_refused_field(status, content.encode(), fields) == field


@pytest.mark.parametrize("code", ["content_filter", "invalid_image_format", "image_too_large"])
def test_a_code_that_clients_act_on_is_kept(code: str):
    frame: JsonObject = {"error": {"code": code, "message": "secret words"}}
    for error in (error_of_frame(frame), error_of_response(400, orjson.dumps(frame))):
        assert isinstance(error, ModelRequestRejected)
        assert report_of(error).code == code
        assert error.message.startswith(f"{code}: ")
        assert "secret" not in error.message


def test_an_overflow_holds_the_words_that_clients_look_for():
    message = error_of_response(400, b'{"error": {"code": "context_length_exceeded"}}').message
    for words in ("context_length_exceeded", "exceeds the context window", "this model's maximum context length is"):
        assert words in message


def test_a_rejection_names_the_further_parameter_of_which_the_provider_speaks():
    refused = body("top_k: must be positive, secret words")
    error = error_of_response(400, refused, unchecked=("min_p", "top_k"))
    assert (error.param, error.message) == ("top_k", "top_k: the model's provider rejected the request (status 400)")
    assert error_of_response(429, refused, unchecked=("top_k",)).param is None
    assert error_of_response(400, refused).param is None
