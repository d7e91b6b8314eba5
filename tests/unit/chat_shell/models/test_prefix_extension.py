"""Each request begins with the one before it, for the cache of every provider."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.anthropic_messages.encoder import encode_messages_request
from chat_shell.models.chat_completions.encoder import encode_call
from chat_shell.models.ports import ModelCall
from chat_shell.models.responses.encoder import encode_response_request
from shared.models.execution import ReasoningEffort
from shared.models.messages import AssistantMessage, SystemMessage, UserMessage
from shared.models.values import JsonObject
from tests.examples import examples
from tests.fakes.model_calls import asked, model_call, tool
from tests.unit.chat_shell.models.conversations import COMPARED, FORM, SYSTEM, conversations


@pytest.mark.parametrize("api", COMPARED)
@examples(500, few=40)
@given(st.data())
def test_a_request_begins_with_the_one_before(api: str, data: st.DataObject):
    for before, after in pairwise(data.draw(conversations(api))):
        earlier, later = COMPARED[api](before), COMPARED[api](after)
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)


@pytest.mark.parametrize("api", ["responses", "anthropic_messages"])
@examples(500, few=40)
@given(st.data())
def test_what_a_provider_wants_back_goes_back_to_it_and_to_nobody_else(api: str, data: st.DataObject):
    last = data.draw(conversations(api))[-1]
    said = [message for message in last.messages if isinstance(message, AssistantMessage)]
    kept = [item.content for message in said if message.reasoning for item in message.reasoning.items]

    for name, compared in COMPARED.items():
        sent = [orjson.dumps(part[1] if isinstance(part, tuple) else part).decode() for part in compared(last)]
        returned = [part for part in sent if part in kept]
        assert returned == (kept if name == api else [])


@pytest.mark.parametrize("api", COMPARED)
def test_a_message_of_the_system_inside_the_history_is_sent_at_its_place(api: str):
    night = SystemMessage(content="It is night.")
    said = (UserMessage(content="Hi"), AssistantMessage(text="Hello"), night, UserMessage(content="And now?"))
    sent = [orjson.dumps(part) for part in COMPARED[api](model_call(messages=(SYSTEM, *said), tools=(tool("look"),)))]
    places = [place for place, part in enumerate(sent) if b"It is night." in part]
    assert places == [len(sent) - 2]
    assert b"Be brief." in sent[0] + sent[1]


@examples(500, few=40)
@given(conversations("anthropic_messages"))
def test_marks_are_four_at_most_and_never_on_thinking(calls: list[ModelCall]):
    for call in calls:
        body = orjson.loads(encode_messages_request(call, FORM))
        blocks = [block for message in body["messages"] for block in message["content"]]
        marked = [block for block in [*body["tools"], *body["system"], *blocks] if "cache_control" in block]
        assert 1 <= len(marked) <= 4
        assert "thinking" not in {block.get("type") for block in marked}
        roles = [message["role"] for message in body["messages"]]
        assert all(one != other for one, other in pairwise(roles))
        assert roles[0] == "user"


@pytest.mark.parametrize("api", COMPARED)
def test_a_reminder_comes_last_and_moves_nothing(api: str):
    talk = (SYSTEM, UserMessage(content="Hi"), AssistantMessage(text="Hello"), UserMessage(content="And now?"))
    call = model_call(messages=talk, tools=(tool("look"),), stored=3)
    plain, reminded = (COMPARED[api](one) for one in (call, call.model_copy(update={"reminder": "Cite."})))
    assert reminded[: len(plain)] == plain
    (last,) = [orjson.dumps(part) for part in reminded[len(plain) :]]
    assert b"user" in last
    assert b'"Cite."' in last


@pytest.mark.parametrize("api", COMPARED)
def test_a_conversation_without_a_user_has_messages_and_keeps_them(api: str):
    talk = (SYSTEM, AssistantMessage(text="Hello"), UserMessage(content="And now?"))
    sent = [COMPARED[api](model_call(messages=talk[:count])) for count in (1, 2, 3)]
    assert b"Be brief." in orjson.dumps(sent[0])
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)


def test_no_api_is_sent_a_conversation_that_it_refuses_for_having_no_user():
    call = model_call(messages=(SYSTEM,))
    assert orjson.loads(encode_call(call))["messages"] == [{"role": "system", "content": "Be brief."}]
    assert orjson.loads(encode_response_request(call))["input"][0]["role"] == "system"
    assert orjson.loads(encode_messages_request(call, FORM))["messages"][0]["role"] == "user"


BODIES: dict[str, Callable[[ModelCall], bytes]] = {
    "chat_completions": encode_call,
    "responses": encode_response_request,
    "anthropic_messages": partial(encode_messages_request, form=FORM),
}


@pytest.mark.parametrize("api", BODIES)
def test_further_parameters_stand_last_as_given_and_replace_nothing(api: str):
    further: JsonObject = {"model": "x", "stream": False, "top_k": 5, "kwargs": {"b": None, "a": [1.5]}}
    plain = BODIES[api](model_call(messages=(SYSTEM, UserMessage(content="Hi")), tools=(tool("look"),)))
    call = model_call(
        messages=(SYSTEM, UserMessage(content="Hi")), tools=(tool("look"),), parameters=asked(extra=further)
    )
    assert BODIES[api](call) == plain[:-1] + b',"top_k":5,"kwargs":{"b":null,"a":[1.5]}}'


def test_thinking_as_the_caller_gives_it_stands_for_what_an_effort_makes_of_it():
    own: JsonObject = {"type": "enabled", "budget_tokens": 2000}
    parameters = asked(extra={"thinking": own}, reasoning_effort=ReasoningEffort.HIGH)
    call = model_call(parameters=parameters)
    body = orjson.loads(encode_messages_request(call, FORM))
    assert (body["thinking"], body["output_config"]) == (own, {"effort": "high"})
    resent = orjson.loads(encode_messages_request(call, replace(FORM, sends_thinking=False)))
    assert resent["thinking"] == {"type": "disabled"}
