"""Convert the history and the prompt of a turn to input items of OpenAI's Responses API, and back.

An assistant message becomes a message item and one function_call item for each call. The message item is left out
where the text is empty, there are calls, and the message before is not an assistant message: then the calls alone
determine the message. What its provider wants back stands before the message item, as a reasoning item whose encrypted
content is that value in JSON.
"""

from collections.abc import Mapping, Sequence

from shared.errors import InvalidRequest
from shared.models.invalid_fields import read
from shared.models.json_text import encode_json
from shared.models.messages import (
    AssistantMessage,
    Content,
    HistoryMessage,
    ImagePart,
    Part,
    ProviderReasoning,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from shared.models.openai_body import (
    AssistantItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputImage,
    InputText,
    OutputText,
    ReasoningItem,
    SystemItem,
    UserItem,
)
from shared.models.values import JsonObject, JsonValue

MessageItem = UserItem | SystemItem | AssistantItem | FunctionCallItem | FunctionCallOutputItem


def encode_items(history: Sequence[HistoryMessage], prompt: Content | None) -> list[JsonObject]:
    """Convert messages to items; the prompt, where there is one, becomes the last item."""
    items: list[JsonObject] = []
    previous: HistoryMessage | None = None
    for message in history:
        items += _encode_message(message, previous)
        previous = message
    if prompt is not None:
        items.append(_encode_user(prompt))
    return items


def _encode_message(message: HistoryMessage, previous: HistoryMessage | None) -> list[JsonObject]:
    match message:
        case UserMessage():
            return [_encode_user(message.content)]
        case AssistantMessage():
            calls = [_encode_call(call) for call in message.tool_calls]
            if message.reasoning is not None:
                return [_encode_reasoning(message.reasoning), _encode_answer(message.text), *calls]
            silent = not message.text and calls and not isinstance(previous, AssistantMessage)
            return calls if silent else [_encode_answer(message.text), *calls]
        case SystemMessage():
            return [{"type": "message", "role": "system", "content": message.content}]
        case ToolMessage():
            output = _encode_content(message.content)
            return [{"type": "function_call_output", "call_id": message.call_id, "output": output}]


def _encode_user(content: Content) -> JsonObject:
    return {"type": "message", "role": "user", "content": _encode_content(content)}


def _encode_answer(text: str) -> JsonObject:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _encode_reasoning(reasoning: ProviderReasoning) -> JsonObject:
    written = encode_json(reasoning.model_dump(mode="json")).decode()
    return {"type": "reasoning", "id": "rs_ballast", "summary": [], "encrypted_content": written}


def _encode_call(call: ToolCall) -> JsonObject:
    return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}


def _encode_content(content: Content) -> str | list[JsonObject]:
    return content if isinstance(content, str) else [_encode_part(part) for part in content]


def _encode_part(part: Part) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": part.url, "detail": part.detail.value}


def decode_input(raw: JsonValue, *, has_prompt: bool = True) -> tuple[tuple[HistoryMessage, ...], Content | None]:
    """Read the field `input`: the history, and the prompt, which is None where no message of the user is the last.

    Without `has_prompt` such a message belongs to the history, too.

    Raises:
        InvalidRequest: an item is malformed or out of place; `param` names it.
    """
    if isinstance(raw, str):
        return (), raw
    if not isinstance(raw, list | tuple):
        raise InvalidRequest("input: must be a string or a list", param="input")
    messages: list[HistoryMessage] = []
    reasoning: ProviderReasoning | None = None
    for index, given in enumerate(raw):
        item = _read_item(given, f"input[{index}]")
        if reasoning is not None and not isinstance(item, AssistantItem):
            problem = "must be a message of the assistant, because a reasoning item stands before it"
            raise InvalidRequest(f"input[{index}]: {problem}", param=f"input[{index}]")
        if isinstance(item, ReasoningItem):
            reasoning = item.encrypted_content
        else:
            _append_item(messages, item, f"input[{index}]", reasoning)
            reasoning = None
    if reasoning is not None:
        raise InvalidRequest("input: must not end with a reasoning item", param="input")
    last = messages[-1] if messages else None
    if has_prompt and isinstance(last, UserMessage):
        return tuple(messages[:-1]), last.content
    return tuple(messages), None


def _append_item(
    messages: list[HistoryMessage], item: MessageItem, place: str, reasoning: ProviderReasoning | None
) -> None:
    match item:
        case UserItem():
            messages.append(UserMessage(content=_decode_content(item.content, f"{place}.content")))
        case SystemItem():
            messages.append(SystemMessage(content=item.content))
        case AssistantItem():
            text = _decode_answer(item.content, f"{place}.content")
            messages.append(AssistantMessage(text=text, reasoning=reasoning))
        case FunctionCallItem():
            call = ToolCall(call_id=item.call_id, name=item.name, arguments=item.arguments)
            said = messages.pop() if messages and isinstance(messages[-1], AssistantMessage) else None
            before = said if isinstance(said, AssistantMessage) else AssistantMessage(text="")
            # A copy is not validated: a message with thousands of calls would be validated again for each of them.
            messages.append(before.model_copy(update={"tool_calls": (*before.tool_calls, call)}))
        case FunctionCallOutputItem():
            content = _decode_content(item.output, f"{place}.output")
            messages.append(ToolMessage(call_id=item.call_id, content=content))


def _read_item(raw: JsonValue, place: str) -> MessageItem | ReasoningItem:
    match _string_field(raw, "type", place, "message"), _string_field(raw, "role", place, ""):
        case "message", "user":
            return read(UserItem, raw, place)
        case "message", "assistant":
            return read(AssistantItem, raw, place)
        case "message", "system":
            return read(SystemItem, raw, place)
        case "message", _:
            raise InvalidRequest(f"{place}.role: must be user, assistant or system", param=f"{place}.role")
        case "reasoning", _:
            return read(ReasoningItem, raw, place)
        case "function_call", _:
            return read(FunctionCallItem, raw, place)
        case "function_call_output", _:
            return read(FunctionCallOutputItem, raw, place)
        case _:
            raise InvalidRequest(f"{place}.type: is no type of item that is known here", param=f"{place}.type")


def _decode_content(raw: JsonValue, place: str) -> Content:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list | tuple):
        raise InvalidRequest(f"{place}: must be a string or a list of parts", param=place)
    return tuple(_decode_part(part, f"{place}[{index}]") for index, part in enumerate(raw))


def _decode_part(raw: JsonValue, place: str) -> Part:
    match _string_field(raw, "type", place, ""):
        case "input_text":
            return TextPart(text=read(InputText, raw, place).text)
        case "input_image":
            image = read(InputImage, raw, place)
            return ImagePart(url=image.image_url, detail=image.detail)
        case _:
            raise InvalidRequest(f"{place}.type: must be input_text or input_image", param=f"{place}.type")


def _decode_answer(raw: str | list[JsonValue], place: str) -> str:
    if isinstance(raw, str):
        return raw
    return "".join(read(OutputText, part, f"{place}[{index}]").text for index, part in enumerate(raw))


def _string_field(raw: JsonValue, key: str, place: str, default: str) -> str:
    if not isinstance(raw, Mapping):
        raise InvalidRequest(f"{place}: must be an object", param=place)
    word = raw.get(key, default)
    return word if isinstance(word, str) else ""
