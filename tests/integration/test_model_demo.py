"""The demo model behind the chat-completions adapter."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler

from chat_shell.models.chat_completions.encoder import ChatCompletionsApi
from chat_shell.models.ports import ModelAnswerEnd, ModelCall, TextFragment
from chat_shell.models.transport.streaming import Endpoint, StreamedModel, open_session
from deploy.demo.model import MODEL_NAME, application
from shared.errors import ModelUnknownToProvider
from shared.models.events import FinishReason
from shared.models.messages import UserMessage
from tests.fakes.model_calls import FAR, StandingClock, asked, model_call, tool


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    async with TestServer(application(pause_seconds=0)) as server:
        yield str(server.make_url("/v1"))


@pytest.fixture
async def model(base_url: str) -> AsyncIterator[StreamedModel]:
    session = open_session()
    yield StreamedModel(Endpoint(base_url), ChatCompletionsApi(), session, StandingClock())
    await session.close()


async def answer(model: StreamedModel, call: ModelCall) -> tuple[str, ModelAnswerEnd]:
    fragments = [fragment async for fragment in model.stream(call, FAR)]
    end = fragments[-1]
    assert isinstance(end, ModelAnswerEnd)
    return "".join(fragment.text for fragment in fragments if isinstance(fragment, TextFragment)), end


async def test_words_and_usage(model: StreamedModel):
    text, end = await answer(model, model_call(model=MODEL_NAME))

    assert text.startswith("Hello! I am demo-model")
    assert end.finish_reason is FinishReason.STOP
    assert end.usage.input_tokens
    assert end.usage.output_tokens


async def test_a_search(model: StreamedModel):
    scope = UserMessage(content="Knowledge bases in scope are now:\n\n- Handbook (id: kb_1)")
    question = UserMessage(content="备份保留多久？")
    call = model_call(model=MODEL_NAME, messages=(scope, question), tools=(tool("knowledge_base_search"),))

    text, end = await answer(model, call)

    assert text == ""
    assert end.finish_reason is FinishReason.TOOL_CALLS
    assert [(made.name, made.arguments) for made in end.tool_calls] == [
        ("knowledge_base_search", '{"query": "备份保留多久？"}')
    ]


async def test_a_limit_on_the_output(model: StreamedModel):
    text, end = await answer(model, model_call(model=MODEL_NAME, parameters=asked(max_output_tokens=3)))

    assert (text, end.finish_reason) == ("Hello! I am ", FinishReason.LENGTH)


async def test_another_model_is_not_served(model: StreamedModel):
    with pytest.raises(ModelUnknownToProvider):
        await answer(model, model_call(model="gpt-5"))


async def test_models_and_answers_that_are_not_streamed(base_url: str):
    async with aiohttp.ClientSession() as client:
        async with client.get(base_url + "/models") as response:
            assert [model["id"] for model in (await response.json())["data"]] == [MODEL_NAME]
        asked_for = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "Hi"}]}
        async with client.post(base_url + "/chat/completions", json=asked_for) as response:
            assert (await response.json())["choices"][0]["message"]["content"].startswith("Hello!")
        for wrong in (b"{", b"[]", b'{"messages": ["x"]}'):
            async with client.post(base_url + "/chat/completions", data=wrong) as response:
                assert response.status == 400


async def test_a_client_that_leaves_in_the_middle_is_no_error():
    ended: asyncio.Queue[BaseException | None] = asyncio.Queue()

    @web.middleware
    async def noting(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answered = await handler(request)
        except BaseException as error:
            ended.put_nowait(error)
            raise
        ended.put_nowait(None)
        return answered

    app = application(pause_seconds=0.001)
    app.middlewares.append(noting)
    body = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "Hello."}], "stream": True}
    runner = web.AppRunner(app)  # the server of the tests would cancel the answer
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        begun = await session.post(f"http://127.0.0.1:{runner.addresses[0][1]}/v1/chat/completions", json=body)
        await begun.content.readline()
        begun.close()
        assert await ended.get() is None
    await runner.cleanup()
