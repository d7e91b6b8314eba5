"""Generated conversations as the model calls of their turns, and what each provider's cache compares of a request."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from hypothesis import strategies as st

from chat_shell.models.anthropic_messages.encoder import MessagesForm, encode_messages_request
from chat_shell.models.chat_completions.encoder import encode_call
from chat_shell.models.ports import ModelCall
from chat_shell.models.responses.encoder import encode_response_request
from shared.models.messages import (
    AssistantMessage,
    HistoryMessage,
    Message,
    OpaqueItem,
    ProviderReasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.fakes.model_calls import asked, model_call, tool

SYSTEM = SystemMessage(content="Be brief.")
FORM = MessagesForm(max_output_tokens=1000)
ITEMS = {
    "chat_completions": '{"reasoning_content":"r%d"}',
    "responses": '{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"e%d"}',
    "anthropic_messages": '{"type":"thinking","thinking":"t%d","signature":"s%d"}',
}

words = st.text(st.characters(codec="utf-8"), max_size=12)


def remove_marks(messages: Sequence[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the role and each block of messages without their cache marks, as the provider's cache compares them."""
    return [
        (message["role"], {name: block[name] for name in block if name != "cache_control"})
        for message in messages
        for block in message["content"]
    ]


def sent_messages(call: ModelCall) -> list[Any]:
    return orjson.loads(encode_call(call))["messages"]


def sent_items(call: ModelCall) -> list[Any]:
    body = orjson.loads(encode_response_request(call))
    return [(body.get("instructions"), body.get("tools")), *body["input"]]


def sent_blocks(call: ModelCall) -> list[Any]:
    body = orjson.loads(encode_messages_request(call, FORM))
    header = remove_marks([{"role": "system", "content": [*body.get("tools", []), *body["system"]]}])
    return [*header, *remove_marks(body["messages"])]


COMPARED: dict[str, Callable[[ModelCall], list[Any]]] = {
    "chat_completions": sent_messages,
    "responses": sent_items,
    "anthropic_messages": sent_blocks,
}


@st.composite
def answers(draw: st.DrawFn, api: str, number: int, call_count: int) -> AssistantMessage:
    """An answer with what its provider wants back at any places of it."""
    text = draw(words)
    calls = tuple(ToolCall(call_id=f"c{number}_{place}", name="look", arguments="{}") for place in range(call_count))
    places = draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, call_count)), max_size=3))
    items = tuple(
        OpaqueItem(
            content=ITEMS[api].replace("%d", f"{number}.{order}"), after_characters=characters, after_calls=behind
        )
        for order, (characters, behind) in enumerate(sorted(places))
    )
    reasoning = ProviderReasoning(api=api, items=items) if items else None
    return AssistantMessage(text=text or "Well.", tool_calls=calls, reasoning=reasoning)


@st.composite
def conversations(draw: st.DrawFn, api: str) -> list[ModelCall]:
    """The model calls of some turns, in order, each turn with a context that may be new and with rounds of tools."""
    log: list[HistoryMessage] = []
    made: list[ModelCall] = []
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        stored = len(log) + 1
        if log and draw(st.booleans()):
            log.append(SystemMessage(content=f"It is evening {turn}."))
        if draw(st.booleans()):
            log.append(UserMessage(content=f"Knowledge bases in scope are now: {turn}."))
        log.append(UserMessage(content=draw(words) + f"\n\n<time>{turn}</time>"))
        for call_count in [*draw(st.lists(st.integers(1, 3), max_size=4)), 0]:
            number += 1
            made.append(_call([SYSTEM, *log], stored, is_last=not call_count))
            said = draw(answers(api, number, call_count))
            log += [said, *(ToolMessage(call_id=call.call_id, content=draw(words)) for call in said.tool_calls)]
    return made


def _call(messages: Sequence[Message], stored: int, *, is_last: bool) -> ModelCall:
    choice = "none" if is_last else "auto"
    parameters = asked(tool_choice=choice)
    return model_call(messages=tuple(messages), stored=stored, tools=(tool("look"),), parameters=parameters)
