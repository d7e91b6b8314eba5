"""The chat-completions adapter against a server on the loopback."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
import pytest
import structlog
from structlog.testing import capture_logs

from chat_shell.models.chat_completions.encoder import ChatCompletionsApi, encode_call
from chat_shell.models.configured.directory import ConfiguredModels, build_models
from chat_shell.models.configured.entries import ModelEntry
from chat_shell.models.ports import ModelAnswerEnd, ModelCall, ModelFragment, TextFragment
from chat_shell.models.transport.streaming import Endpoint, StreamedModel, open_session, salt_of
from shared.errors import (
    DeadlineExceeded,
    ModelAuthenticationFailed,
    ModelContextOverflow,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelRequestRejected,
    ModelStalled,
    ModelStreamCut,
    ModelUnavailable,
    ModelUnknownToProvider,
)
from shared.models.events import Usage
from tests.fakes.model_calls import FAR, StandingClock, asked, model_call, tool
from tests.fakes.model_server import FakeModelServer, Fault, Reply

KEY = "sk-very-secret"
SALT_SECRET = "s" * 32
MakeModel = Callable[..., StreamedModel]

PATIENCES = (0.1, 1.0, 10.0)
"""Seconds; the first is enough unless the machine is too busy to get as far as the test needs."""

BUSY_SECONDS = 60.0
"""As long as a busy machine may need to send the end of a body."""


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with FakeModelServer() as server:
        yield server


@pytest.fixture
async def make_model(server: FakeModelServer) -> AsyncIterator[MakeModel]:
    session = open_session()

    def make(base_url: str = server.base_url, **more: object) -> StreamedModel:
        endpoint = Endpoint(base_url, api_key=KEY, **more)  # type: ignore[arg-type]
        return StreamedModel(endpoint, ChatCompletionsApi(), session, StandingClock())

    yield make
    await session.close()


async def streamed(model: StreamedModel, call: ModelCall | None = None) -> list[ModelFragment]:
    return [fragment async for fragment in model.stream(call or model_call(), FAR)]


async def failure(model: StreamedModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await streamed(model)
    return caught.value


async def test_what_is_sent(server: FakeModelServer, make_model: MakeModel):
    call = model_call(tools=(tool("a"),), parameters=asked(max_output_tokens=9))

    fragments = await streamed(make_model(), call)

    assert fragments[0] == TextFragment(text="ok")
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == encode_call(call)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"


async def test_the_upstream_name_is_sent_in_place_of_the_offered_one(server: FakeModelServer, make_model: MakeModel):
    await streamed(make_model(model="vendor/big-2"))

    assert server.requests[0].json_body["model"] == "vendor/big-2"


async def sent_by(call: ModelCall, **fields: Any) -> tuple[dict[str, str], dict[str, Any]]:
    async with FakeModelServer() as server, open_session() as session:
        server.script(Reply(text=("x",)))
        entry = ModelEntry(name="m", base_url=server.base_url, **fields)
        model = build_models((entry,), session, StandingClock()).model("m")
        _ = [fragment async for fragment in model.stream(call, FAR)]
        (request,) = server.requests
        return dict(request.headers), request.json_body


async def test_the_header_goes_to_models_that_name_it_only():
    headers, _ = await sent_by(model_call(), affinity_header="X-Session-Id")
    others, _ = await sent_by(model_call())

    assert headers["x-session-id"] == "key_1"
    assert "key_1" not in others.values()
    assert "x-session-id" not in (await sent_by(model_call(cache_key=""), affinity_header="X-Session-Id"))[0]


async def test_each_tenant_has_a_salt_of_its_own_at_models_that_switch_it_on():
    _, body = await sent_by(model_call(tenant="a"), cache_salt=SALT_SECRET)

    assert body["cache_salt"] == salt_of(SALT_SECRET, "a")
    assert "cache_salt" not in (await sent_by(model_call(tenant="a")))[1]


async def test_usage_as_reported(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(text=("a",), usage={"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}))

    end = (await streamed(make_model()))[-1]

    assert isinstance(end, ModelAnswerEnd)
    assert end.usage == Usage(input_tokens=9, cached_tokens=8)


async def test_a_connection_is_used_again(server: FakeModelServer, make_model: MakeModel):
    model = make_model(close_grace_seconds=BUSY_SECONDS)
    for _ in range(3):
        await streamed(model)

    assert len(server.connections) == 1


async def test_a_body_that_ends_a_little_after_the_end_mark_spares_the_connection(
    server: FakeModelServer, make_model: MakeModel
):
    whole = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    server.script(Reply(raw=(whole,), pause_seconds=0.005))
    model = make_model(close_grace_seconds=BUSY_SECONDS)
    for _ in range(2):
        await streamed(model)

    assert len(server.connections) == 1


async def test_deltas_come_while_the_answer_is_being_made(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(text=("a", "b"), hold_after=1))

    async with aclosing(make_model().stream(model_call(), FAR)) as fragments:
        assert await anext(fragments) == TextFragment(text="a")
        await server.wait_held()
        server.release()
        assert await anext(fragments) == TextFragment(text="b")


async def test_an_answer_that_is_not_streamed(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(text=("a", "b"), ignore_stream=True))

    assert (await streamed(make_model()))[0] == TextFragment(text="ab")


@pytest.mark.parametrize("fault", [Fault.ENDLESS, Fault.STALL])
async def test_closing_the_stream_closes_the_connection(server: FakeModelServer, make_model: MakeModel, fault: Fault):
    server.script(Reply(text=("a",), fault=fault))

    async with aclosing(make_model().stream(model_call(), FAR)) as fragments:
        await anext(fragments)

    await server.wait_closed()


async def test_cancelling_a_wait_closes_the_connection(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(first_pause_seconds=3600))
    task = asyncio.ensure_future(streamed(make_model()))
    await server.wait_requests(1)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await server.wait_closed()


async def test_a_consumer_that_does_not_pull_holds_the_provider_back(server: FakeModelServer, make_model: MakeModel):
    count, delta = 400, "x" * 100_000
    server.script(Reply(text=(delta,) * count))

    async with aclosing(make_model().stream(model_call(), FAR)) as fragments:
        await anext(fragments)
        while (sent := server.bytes_sent) < await _after_some_turns(server):
            pass
        rest = [fragment async for fragment in fragments]

    assert sent < count * len(delta) / 2
    assert sum(len(fragment.text) for fragment in rest if isinstance(fragment, TextFragment)) > sent


async def _after_some_turns(server: FakeModelServer) -> int:
    for _ in range(200):
        await asyncio.sleep(0)
    return server.bytes_sent


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(status=500), ModelUnavailable),
        (Reply(status=503, body="<html>busy</html>"), ModelUnavailable),
        (Reply(status=401, body=f"Incorrect API key {KEY}"), ModelAuthenticationFailed),
        (Reply(status=403), ModelAuthenticationFailed),
        (Reply(status=400), ModelRequestRejected),
        (Reply(status=404), ModelUnknownToProvider),
        (Reply(status=422), ModelRequestRejected),
        (Reply(status=400, body='{"error": {"code": "context_length_exceeded"}}'), ModelContextOverflow),
        (Reply(status=429, body='{"error": {"code": "insufficient_quota"}}'), ModelQuotaExhausted),
        (Reply(status=307, headers={"Location": "/elsewhere"}), ModelProtocolViolated),
        (Reply(text=("a",), fault=Fault.CUT), ModelStreamCut),
        (Reply(text=("a",), fault=Fault.END), ModelStreamCut),
        (Reply(text=("a",), fault=Fault.GARBAGE), ModelProtocolViolated),
        (Reply(raw=(b"data: {\xff}\n\n",)), ModelProtocolViolated),
        (Reply(raw=(b"<html>hello</html>",), headers={"Content-Type": "text/html"}), ModelProtocolViolated),
        (Reply(raw=(b'data: {"error": {"message": "boom", "code": 503}}\n\n',)), ModelUnavailable),
        (Reply(raw=(b"data: " + b"x" * 3_000_000,) * 3), ModelProtocolViolated),
        (Reply(), ModelProtocolViolated),
    ],
)
async def test_failures_are_told_apart(
    server: FakeModelServer, make_model: MakeModel, reply: Reply, kind: type[ModelError]
):
    server.script(reply)

    error = await failure(make_model())

    assert type(error) is kind
    assert KEY not in error.message
    assert "127.0.0.1" not in error.message


async def test_a_rate_limit_says_how_long_to_wait(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(status=429, headers={"Retry-After": "7"}))

    error = await failure(make_model())

    assert type(error) is ModelRateLimited
    assert error.retry_after_seconds == 7.0


@pytest.mark.parametrize("fault", [Fault.STALL, Fault.STALL_WITH_COMMENTS])
async def test_a_stall_is_noticed_and_comments_do_not_count(
    server: FakeModelServer, make_model: MakeModel, fault: Fault
):
    server.script(Reply(text=("a",), fault=fault, repeat=True))

    for patience_seconds in PATIENCES:
        assert type(await failure(make_model(idle_timeout_seconds=patience_seconds))) is ModelStalled
        if server.requests:
            break
    await server.wait_closed()


async def test_a_provider_that_never_begins_to_answer(server: FakeModelServer, make_model: MakeModel):
    server.script(Reply(first_pause_seconds=3600))

    assert type(await failure(make_model(idle_timeout_seconds=0.1))) is ModelStalled


async def test_a_stall_after_the_finish_reason_is_the_end(server: FakeModelServer, make_model: MakeModel):
    whole = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n'
    server.script(Reply(raw=(whole,), fault=Fault.STALL, repeat=True))

    fragments: list[ModelFragment] = []
    for patience_seconds in PATIENCES:
        with suppress(ModelStalled):
            fragments = await streamed(make_model(idle_timeout_seconds=patience_seconds))
            break

    assert fragments[0] == TextFragment(text="a")
    assert isinstance(fragments[-1], ModelAnswerEnd)


@pytest.mark.parametrize("fault", [Fault.STALL, Fault.ENDLESS])
async def test_the_deadline_ends_every_stream(server: FakeModelServer, make_model: MakeModel, fault: Fault):
    server.script(Reply(text=("a",), fault=fault, repeat=True))

    for patience_seconds in PATIENCES:
        soon = StandingClock().instant + timedelta(seconds=patience_seconds)
        with pytest.raises(DeadlineExceeded):
            async for _ in make_model().stream(model_call(), soon):
                pass
        if server.requests:
            break
    await server.wait_closed()


async def test_after_the_deadline_nothing_is_sent(server: FakeModelServer, make_model: MakeModel):
    with pytest.raises(DeadlineExceeded):
        await anext(make_model().stream(model_call(), StandingClock().instant))

    assert server.requests == []


async def test_nobody_listens(make_model: MakeModel):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await failure(make_model(f"http://127.0.0.1:{port}/v1"))

    assert type(error) is ModelUnavailable
    assert str(port) not in error.message


async def test_a_name_that_does_not_resolve_and_a_server_without_tls(server: FakeModelServer, make_model: MakeModel):
    for address in ("http://model.invalid/v1", server.base_url.replace("http:", "https:")):
        assert type(await failure(make_model(address))) is ModelUnavailable


async def test_a_server_that_speaks_something_else(make_model: MakeModel):
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"220 mail ready\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        error = await failure(make_model(f"http://127.0.0.1:{port}/v1"))

    assert type(error) is ModelProtocolViolated


async def test_a_field_that_a_server_refuses_is_learned(server: FakeModelServer, make_model: MakeModel):
    refusal = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.script(Reply(status=400, body=orjson.dumps({"error": {"message": refusal}}).decode()))
    model = make_model()
    call = model_call(parameters=asked(max_output_tokens=9))

    for _ in range(2):
        fragments = await streamed(model, call)
        assert fragments[0] == TextFragment(text="ok")

    sent = [{"max_tokens", "max_completion_tokens"} & set(request.json_body) for request in server.requests]
    assert sent == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


async def test_a_server_that_refuses_everything_is_not_asked_for_ever(server: FakeModelServer, make_model: MakeModel):
    refusal = "max_tokens and max_completion_tokens: unknown"
    server.script(Reply(status=400, body=refusal, repeat=True))

    assert type(await failure(make_model())) is ModelRequestRejected
    assert len(server.requests) <= 5


async def test_a_failure_is_a_warning_with_model_host_and_status_and_no_word_of_the_provider(server: FakeModelServer):
    server.script(Reply(status=503, body="my secret"), Reply(text=("a",), fault=Fault.CUT))
    entry = ModelEntry(name="fake-model", base_url=server.base_url)
    async with open_session() as session:
        directory = build_models((entry,), session, StandingClock())
        with capture_logs() as lines:
            for _ in range(2):
                stream = cast(AsyncGenerator[ModelFragment], directory.model("fake-model").stream(model_call(), FAR))
                with pytest.raises(ModelError):
                    _ = [fragment async for fragment in stream]
    host = urlsplit(server.base_url).netloc
    assert [(line["log_level"], line["event"], line["model"], line["host"]) for line in lines] == [
        ("warning", "Model failed", "fake-model", host)
    ] * 2
    assert [line["status"] for line in lines] == [503, None]
    assert "secret" not in str(lines)


class TestLogging:
    """CHAT_SHELL_LOG_LLM_REQUESTS."""

    @pytest.fixture
    async def directory(self, server: FakeModelServer) -> AsyncIterator[ConfiguredModels]:
        entry = ModelEntry(name="fake-model", base_url=server.base_url)
        async with open_session() as session:
            yield build_models((entry,), session, StandingClock(), logs_requests=True)

    def stream(self, directory: ConfiguredModels) -> AsyncGenerator[ModelFragment]:
        return cast(AsyncGenerator[ModelFragment], directory.model("fake-model").stream(model_call(), FAR))

    async def test_request_and_response_whole(self, server: FakeModelServer, directory: ConfiguredModels):
        server.script(Reply(text=("Hel", "lo"), reasoning=("hm",)))

        with structlog.testing.capture_logs() as logs:
            async for _ in self.stream(directory):
                pass

        request, response = logs
        assert server.requests[0].body == encode_call(model_call())
        assert request["event"] == "LLM_REQUEST"
        assert request["body"] == server.requests[0].json_body
        assert response["event"] == "LLM_RESPONSE"
        assert (response["text"], response["reasoning"], response["finish_reason"]) == ("Hello", "hm", "stop")
        assert response["usage"]["output_tokens"] == 3
        assert "duration_seconds" in response
        assert "error" not in response

    async def test_a_failure_by_its_class(self, server: FakeModelServer, directory: ConfiguredModels):
        server.script(Reply(text=("Hel",), fault=Fault.CUT))

        with structlog.testing.capture_logs() as logs, pytest.raises(ModelStreamCut):
            async for _ in self.stream(directory):
                pass

        (response,) = (line for line in logs if line["event"] == "LLM_RESPONSE")
        assert (response["error"], response["text"]) == ("ModelStreamCut", "Hel")

    async def test_a_stream_that_the_caller_closes(self, server: FakeModelServer, directory: ConfiguredModels):
        server.script(Reply(text=("a",), fault=Fault.ENDLESS))

        with structlog.testing.capture_logs() as logs:
            async with aclosing(self.stream(directory)) as fragments:
                await anext(fragments)

        assert logs[1]["error"] == "closed by the caller"
        await server.wait_closed()
