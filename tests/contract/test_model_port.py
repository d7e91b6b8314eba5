"""The port `Model`: what every adapter and the scripted fake do alike."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import pytest

from chat_shell.models.anthropic_messages.encoder import AnthropicMessagesApi, MessagesForm
from chat_shell.models.chat_completions.encoder import ChatCompletionsApi
from chat_shell.models.configured.llm_log import log_answer, log_request
from chat_shell.models.ports import Model, ModelAnswerEnd, ModelFragment, TextFragment
from chat_shell.models.responses.model import ResponsesApi
from chat_shell.models.transport.streaming import Endpoint, ProviderApi, StreamedModel, open_session
from shared.errors import (
    BallastError,
    ModelError,
    ModelProtocolViolated,
    ModelRateLimited,
    ModelStalled,
    ModelStreamCut,
    ModelUnavailable,
)
from shared.models.events import FinishReason
from shared.models.messages import ToolCall
from tests.fakes.model_calls import FAR, StandingClock, model_call
from tests.fakes.model_scripted import ScriptedModel, calls, says
from tests.fakes.model_server import FakeModelServer, Fault, Reply, ScriptedCall

CALLS = (ToolCall(call_id="a", name="look", arguments='{"x": 1}'), ToolCall(call_id="b", name="find", arguments="{}"))


class Provider:
    """A model that can be told what to say, whatever is behind it."""

    def __init__(self, model: Model, server: FakeModelServer | None) -> None:
        self._server = server
        self._model = model

    def says(self, *texts: str) -> Model:
        if self._server is None:
            return ScriptedModel(says(*texts))
        self._server.script(Reply(text=texts))
        return self._model

    def calls(self, *tool_calls: ToolCall) -> Model:
        if self._server is None:
            return ScriptedModel(calls(*tool_calls))
        scripted = tuple(ScriptedCall(name=c.name, arguments=c.arguments, call_id=c.call_id) for c in tool_calls)
        self._server.script(Reply(tool_calls=scripted))
        return self._model

    def fails(self) -> Model:
        if self._server is None:
            return ScriptedModel([ModelUnavailable("the model's provider failed (status 500)")])
        self._server.script(Reply(status=500))
        return self._model

    def talks_on(self) -> Model:
        if self._server is None:
            return ScriptedModel([TextFragment(text="x")] * 1000)
        self._server.script(Reply(text=("x",), fault=Fault.ENDLESS))
        return self._model


APIS: dict[str, ProviderApi] = {
    "chat_completions": ChatCompletionsApi(),
    "responses": ResponsesApi(),
    "anthropic_messages": AnthropicMessagesApi(MessagesForm(max_output_tokens=1000)),
}


@pytest.fixture(params=["scripted", *APIS, "logged"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    if request.param == "scripted":
        yield Provider(ScriptedModel(says("unused")), None)
        return
    api = APIS[request.param if request.param in APIS else "chat_completions"]
    logs = {"observers": [partial(log_answer, StandingClock())], "on_request": log_request}
    async with FakeModelServer() as server, open_session() as session:
        hooks: Any = logs if request.param == "logged" else {}
        yield Provider(StreamedModel(Endpoint(server.base_url), api, session, StandingClock(), **hooks), server)


def opened(model: Model) -> AsyncGenerator[ModelFragment]:
    return cast(AsyncGenerator[ModelFragment], model.stream(model_call(), FAR))


async def streamed(model: Model) -> list[ModelFragment]:
    return [fragment async for fragment in opened(model)]


async def test_text_comes_in_order_and_one_end_comes_last(provider: Provider):
    *said, end = await streamed(provider.says("Hel", "lo ", "世界"))

    assert all(isinstance(fragment, TextFragment) for fragment in said)
    assert "".join(fragment.text for fragment in said if isinstance(fragment, TextFragment)) == "Hello 世界"
    assert isinstance(end, ModelAnswerEnd)
    assert (end.finish_reason, end.tool_calls) == (FinishReason.STOP, ())
    assert end.usage.output_tokens is not None


async def test_tool_calls_come_whole_with_the_end(provider: Provider):
    *_, end = await streamed(provider.calls(*CALLS))

    assert isinstance(end, ModelAnswerEnd)
    assert (end.finish_reason, end.tool_calls) == (FinishReason.TOOL_CALLS, CALLS)


async def test_a_failure_is_a_model_error_that_says_whether_to_retry(provider: Provider):
    with pytest.raises(ModelError) as caught:
        await streamed(provider.fails())

    assert isinstance(caught.value, BallastError)
    assert caught.value.retryable


async def test_a_stream_may_be_closed_at_any_fragment(provider: Provider):
    async with aclosing(opened(provider.talks_on())) as fragments:
        first = await anext(fragments)

    assert isinstance(first, TextFragment)
    with pytest.raises(StopAsyncIteration):
        await anext(fragments)


async def test_each_stream_is_a_call_of_its_own(provider: Provider):
    ends = [(await streamed(provider.says("one")))[-1] for _ in range(2)]

    assert [type(end) for end in ends] == [ModelAnswerEnd] * 2


@pytest.fixture(params=APIS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[tuple[StreamedModel, FakeModelServer]]:
    """An adapter with a short idle timeout, and the server behind it."""
    async with FakeModelServer() as server, open_session() as session:
        endpoint = Endpoint(server.base_url, idle_timeout_seconds=2)
        yield StreamedModel(endpoint, APIS[request.param], session, StandingClock()), server


async def said_until(model: Model, kind: type[ModelError]) -> tuple[str, ModelError]:
    said: list[str] = []
    with pytest.raises(kind) as caught:
        async for fragment in model.stream(model_call(), FAR):
            assert isinstance(fragment, TextFragment)
            said.append(fragment.text)
    return "".join(said), caught.value


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.CUT, ModelStreamCut),
        (Fault.END, ModelStreamCut),
        (Fault.GARBAGE, ModelProtocolViolated),
        (Fault.STALL, ModelStalled),
        (Fault.STALL_WITH_COMMENTS, ModelStalled),
    ],
)
async def test_what_was_said_comes_before_the_fault(
    served: tuple[StreamedModel, FakeModelServer], fault: Fault, kind: type[ModelError]
):
    model, server = served
    server.script(Reply(text=("Half ", "an ", "answer"), fault=fault, fault_after=2, headers={"request-id": "req-7"}))

    said, error = await said_until(model, kind)

    assert said == "Half an "
    assert error.request_id == "req-7"


async def test_leaving_an_endless_answer_closes_the_connection(served: tuple[StreamedModel, FakeModelServer]):
    model, server = served
    server.script(Reply(text=("x",), fault=Fault.ENDLESS))

    async with aclosing(opened(model)) as fragments:
        await anext(fragments)

    await server.wait_closed()


async def test_a_provider_that_asks_to_wait_says_how_long(served: tuple[StreamedModel, FakeModelServer]):
    model, server = served
    server.script(Reply(status=429, headers={"retry-after": "7", "x-request-id": "an id with\tblanks"}))

    _, error = await said_until(model, ModelRateLimited)

    assert isinstance(error, ModelRateLimited)
    assert (error.status, error.retry_after_seconds, error.request_id) == (429, 7.0, None)


async def test_an_answer_that_is_not_streamed(served: tuple[StreamedModel, FakeModelServer]):
    model, server = served
    scripted = ScriptedCall(name="look", arguments='{"x": 1}', call_id="a")
    server.script(Reply(text=("Well.",), tool_calls=(scripted,), ignore_stream=True))

    said, *_, end = await streamed(model)

    assert said == TextFragment(text="Well.")
    assert isinstance(end, ModelAnswerEnd)
    assert [call.name for call in end.tool_calls] == ["look"]


@pytest.mark.parametrize(
    ("given", "reason"), [("length", FinishReason.LENGTH), ("content_filter", FinishReason.CONTENT_FILTER)]
)
async def test_an_answer_that_ends_early(
    served: tuple[StreamedModel, FakeModelServer], given: str, reason: FinishReason
):
    model, server = served
    server.script(Reply(text=("Well",), finish_reason=given))

    *_, end = await streamed(model)

    assert isinstance(end, ModelAnswerEnd)
    assert end.finish_reason is reason
