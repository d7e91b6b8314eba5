"""Convert messages, their parts and tool calls to protobuf messages, and back."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import TypeAdapter

from protos.execution.v1 import messages_pb2 as pb
from shared.models.messages import (
    AddedMessage,
    AssistantMessage,
    Content,
    HistoryMessage,
    ImageDetail,
    ImagePart,
    Part,
    TextPart,
    ToolMessage,
    TurnMessage,
    UserMessage,
)
from shared.wire.values import look_up, refusal, require, scalar_fields

DETAIL_TO_PROTO = {detail: pb.ImageDetail.Value(f"IMAGE_DETAIL_{detail.name}") for detail in ImageDetail}
DETAIL_FROM_PROTO = {number: detail for detail, number in DETAIL_TO_PROTO.items()}

_MESSAGES = TypeAdapter(tuple[HistoryMessage, ...])
Kind = TypeVar("Kind", bound=HistoryMessage)


def write_content(content: Content, into: pb.Content) -> None:
    """Write the content of a message, a text or a list of parts, into a protobuf message.

    A message that was created by itself would be copied into the one that holds it, images of megabytes included.
    """
    if isinstance(content, str):
        into.text = content
        return
    into.parts.SetInParent()
    for part in content:
        written = into.parts.parts.add()
        if isinstance(part, TextPart):
            written.text = part.text
        else:
            written.image.url = part.url
            written.image.detail = DETAIL_TO_PROTO[part.detail]


def content_from_proto(content: pb.Content, place: str) -> Content:
    """Read the content of a message: a text, or a list of parts.

    Raises:
        InvalidRequest: a part is malformed or missing; `param` names it, starting with `place`.
    """
    match content.WhichOneof("content"):
        case "text":
            return content.text
        case "parts":
            return tuple(_part_from_proto(part, f"{place}[{index}]") for index, part in enumerate(content.parts.parts))
        case _:
            raise refusal(place, "is neither text nor parts")


def _part_from_proto(part: pb.Part, place: str) -> Part:
    match part.WhichOneof("part"):
        case "text":
            return TextPart(text=part.text)
        case "image":
            return ImagePart(
                url=part.image.url, detail=look_up(DETAIL_FROM_PROTO, part.image.detail, f"{place}.detail")
            )
        case _:
            raise refusal(place, "is neither text nor an image")


def write_messages(messages: Iterable[HistoryMessage], added: Callable[[], pb.Message]) -> None:
    """Write messages in their order.

    `added` appends an empty protobuf message to the list to be filled and returns it. A message that was created
    outside of the list would have to be copied into it.
    """
    for message in messages:
        _write_message(message, added())


def _write_message(message: HistoryMessage, target: pb.Message) -> None:
    if message.role == "user":
        write_content(message.content, target.user.content)
    elif message.role == "tool":
        target.tool.call_id = message.call_id
        write_content(message.content, target.tool.content)
    elif message.role == "system":
        target.system.content = message.content
        target.system.SetInParent()
    else:
        target.assistant.SetInParent()
        target.assistant.text = message.text
        for call in message.tool_calls:
            target.assistant.tool_calls.add(call_id=call.call_id, name=call.name, arguments=call.arguments)
        if message.reasoning is not None:
            target.assistant.reasoning.api = message.reasoning.api
            for item in message.reasoning.items:
                target.assistant.reasoning.items.add(**dict(item))


def messages_from_proto(messages: Iterable[pb.Message], place: str) -> tuple[HistoryMessage, ...]:
    """Read messages in their order.

    Raises:
        InvalidRequest: a message is malformed or of an unknown kind; `param` names it, starting with `place`.
    """
    return _MESSAGES.validate_python([_fields_of(message, place, index) for index, message in enumerate(messages)])


def added_from_proto(messages: Iterable[pb.Message], place: str) -> tuple[AddedMessage, ...]:
    """Read messages that a turn has added; a message of a user or of the system is none of these.

    Raises:
        InvalidRequest: as `messages_from_proto`.
    """
    return _only((AssistantMessage, ToolMessage), messages_from_proto(messages, place), place)


def turn_messages_from_proto(messages: Iterable[pb.Message], place: str) -> tuple[TurnMessage, ...]:
    """Read what a turn has behind it; a message of the system is none of it.

    Raises:
        InvalidRequest: as `messages_from_proto`.
    """
    return _only((AssistantMessage, ToolMessage, UserMessage), messages_from_proto(messages, place), place)


def _only(kinds: tuple[type[Kind], ...], read: Sequence[HistoryMessage], place: str) -> tuple[Kind, ...]:
    kept = tuple(message for message in read if isinstance(message, kinds))
    if len(kept) < len(read):
        index, given = next((index, message) for index, message in enumerate(read) if not isinstance(message, kinds))
        raise refusal(f"{place}[{index}]", f"is a message of a {given.role}, which no turn adds")
    return kept


def _fields_of(message: pb.Message, place: str, index: int) -> dict[str, object]:
    match message.WhichOneof("message"):
        case "user":
            return {"role": "user", "content": _content_of(message.user, place, index)}
        case "assistant":
            return _answer_of(message.assistant)
        case "tool":
            answer = message.tool
            return {"role": "tool", "call_id": answer.call_id, "content": _content_of(answer, place, index)}
        case "system":
            return {"role": "system", "content": message.system.content}
        case _:
            raise refusal(f"{place}[{index}]", "is no message that is known here")


def _answer_of(said: pb.AssistantMessage) -> dict[str, object]:
    calls = [{"call_id": one.call_id, "name": one.name, "arguments": one.arguments} for one in said.tool_calls]
    fields: dict[str, object] = {"role": "assistant", "text": said.text, "tool_calls": calls}
    if said.HasField("reasoning"):
        items = [scalar_fields(item) for item in said.reasoning.items]
        fields["reasoning"] = {"api": said.reasoning.api, "items": items}
    return fields


def _content_of(message: pb.UserMessage | pb.ToolMessage, place: str, index: int) -> Content:
    content = message.content
    if content.WhichOneof("content") == "text":
        return content.text
    require(message.HasField("content"), f"{place}[{index}].content")
    return content_from_proto(content, f"{place}[{index}].content")
