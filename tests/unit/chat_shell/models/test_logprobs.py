"""Log probabilities of an answer's tokens: asked of the providers that have them, and read in front of their text."""

from typing import Any

import orjson
import pytest

from chat_shell.models.anthropic_messages.encoder import AnthropicMessagesApi, MessagesForm
from chat_shell.models.chat_completions.encoder import ChatCompletionsApi
from chat_shell.models.ports import LogprobsFragment, ModelAnswerEnd, ModelFragment, TextFragment
from chat_shell.models.responses.model import ResponsesApi
from chat_shell.models.transport.frames import LeftOut
from chat_shell.models.transport.logprobs import MAX_LOGPROBS_CHARACTERS
from chat_shell.models.transport.streaming import AnswerReader, ProviderApi
from shared.errors import InvalidRequest
from tests.fakes.model_calls import asked, model_call

ASKED = model_call(parameters=asked(top_logprobs=2))
OTHER: dict[str, Any] = {"token": "A", "logprob": -2.5, "bytes": [65]}
GIVEN: dict[str, Any] = {"token": "Zwö", "logprob": -1, "top_logprobs": [OTHER]}
READ: dict[str, Any] = {**GIVEN, "bytes": [90, 119, 195, 182]}


def chat_frames(*tokens: Any) -> list[bytes]:
    """Frames of a chat completion, each with one token as both its text and its probability."""
    ends: list[Any] = [{"choices": [{"delta": {}, "finish_reason": "stop", "logprobs": None}]}]
    said: list[Any] = [
        {"choices": [{"delta": {"content": "Zwö"}, "logprobs": {"content": [token]}}]} for token in tokens
    ]
    return [b"data: %b\n\n" % orjson.dumps(frame) for frame in [*said, *ends]]


def response_frames(*tokens: Any) -> list[bytes]:
    said: list[Any] = [{"type": "response.output_text.delta", "delta": "Zwö", "logprobs": [token]} for token in tokens]
    end: dict[str, Any] = {
        "type": "response.completed",
        "response": {"object": "response", "status": "completed", "output": []},
    }
    return [b"data: %b\n\n" % orjson.dumps(frame) for frame in [*said, end]]


BOTH = [(ChatCompletionsApi(), chat_frames), (ResponsesApi(), response_frames)]


def read(api: ProviderApi, frames: list[bytes], call: Any = ASKED) -> list[ModelFragment]:
    reader = AnswerReader(api.assembler(call))
    return [*(fragment for frame in frames for fragment in reader.feed(frame)), *reader.end()]


@pytest.mark.parametrize(("api", "frames"), BOTH)
def test_probabilities_come_before_their_text(api: ProviderApi, frames: Any):
    weighed, text, again, same, _ = read(api, frames(GIVEN, GIVEN))
    assert isinstance(weighed, LogprobsFragment)
    assert orjson.loads(weighed.tokens) == [READ]
    assert (text, again, same) == (TextFragment(text="Zwö"), weighed, text)


@pytest.mark.parametrize(("api", "frames"), BOTH)
def test_who_does_not_ask_gets_none(api: ProviderApi, frames: Any):
    assert read(api, frames(GIVEN), model_call())[:-1] == [TextFragment(text="Zwö")]
    assert b"logprobs" not in api.encode(model_call())


@pytest.mark.parametrize(("api", "frames"), BOTH)
@pytest.mark.parametrize("given", [None, 7, {}, {"token": "a"}, {"token": 7, "logprob": -1}, {"logprob": -1}])
def test_what_is_no_token_is_passed_over(api: ProviderApi, frames: Any, given: Any):
    assert read(api, frames(given))[:-1] == [TextFragment(text="Zwö")]


@pytest.mark.parametrize(("api", "frames"), BOTH)
def test_there_is_an_end_to_them(api: ProviderApi, frames: Any):
    endless: dict[str, Any] = {**GIVEN, "token": "x" * MAX_LOGPROBS_CHARACTERS, "bytes": []}
    *said, end = read(api, frames(GIVEN, endless, GIVEN))
    assert sum(isinstance(one, LogprobsFragment) for one in said) == 1
    assert isinstance(end, ModelAnswerEnd)
    assert end.left_out == (LeftOut.LOGPROBS,)


def test_what_the_providers_are_asked():
    chat = orjson.loads(ChatCompletionsApi().encode(ASKED))
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 2)
    body = orjson.loads(ResponsesApi().encode(ASKED))
    assert (body["include"][-1], body["top_logprobs"]) == ("message.output_text.logprobs", 2)
    alone = model_call(parameters=asked(top_logprobs=0))
    assert "top_logprobs" not in orjson.loads(ChatCompletionsApi().encode(alone))
    assert "top_logprobs" not in orjson.loads(ResponsesApi().encode(alone))
    with pytest.raises(InvalidRequest, match="top_logprobs: this model's API does not have it") as caught:
        AnthropicMessagesApi(MessagesForm(max_output_tokens=9)).encode(alone)
    assert caught.value.param == "top_logprobs"


@pytest.mark.parametrize(("given", "told"), [("-Infinity", -9999.0), ("NaN", -9999.0), ("-1e400", -9999.0), ("1", 0.0)])
@pytest.mark.parametrize(("api", "frames"), BOTH)
def test_what_is_no_probability_fails_no_answer(api: ProviderApi, frames: Any, given: str, told: float):
    odd = [
        frame.replace(b'"logprob":-2.5,"bytes":[65]', b'"logprob":%b,"bytes":[300]' % given.encode())
        for frame in frames(GIVEN)
    ]
    weighed, text, *_ = read(api, odd)
    assert isinstance(weighed, LogprobsFragment)
    assert orjson.loads(weighed.tokens)[0]["top_logprobs"] == [{"token": "A", "logprob": told, "bytes": [65]}]
    assert text == TextFragment(text="Zwö")
