"""The port `Model`: what every adapter and the scripted fake do alike."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import pytest

from chat_shell.models.chat_completions.model import ChatCompletionsApi
from chat_shell.models.configured.llm_log import LoggedModel, log_request
from chat_shell.models.ports import Model, ModelAnswerEnd, ModelFragment, TextFragment
from chat_shell.models.transport.session import open_session
from chat_shell.models.transport.streaming import Endpoint, StreamedModel
from shared.errors import BallastError, ModelError, ModelUnavailable
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


@pytest.fixture(params=["scripted", "chat_completions", "logged"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    if request.param == "scripted":
        yield Provider(ScriptedModel(says("unused")), None)
        return
    async with FakeModelServer() as server:
        session = open_session()
        hook = log_request if request.param == "logged" else None
        model = StreamedModel(
            Endpoint(server.base_url), ChatCompletionsApi(), session, StandingClock(), on_request=hook
        )
        yield Provider(LoggedModel(model, StandingClock()) if hook else model, server)
        await session.close()


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
    (end,) = await streamed(provider.calls(*CALLS))

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
