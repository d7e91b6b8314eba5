"""Messages, parts and tool calls."""

from collections.abc import Iterable

from protos.execution.v1 import messages_pb2 as pb
from shared.models.messages import (
    AssistantMessage,
    Content,
    HistoryMessage,
    ImageDetail,
    ImagePart,
    Part,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from shared.wire.values import known, refusal, require

DETAIL_TO_PROTO = {
    ImageDetail.LOW: pb.IMAGE_DETAIL_LOW,
    ImageDetail.HIGH: pb.IMAGE_DETAIL_HIGH,
    ImageDetail.AUTO: pb.IMAGE_DETAIL_AUTO,
    ImageDetail.ORIGINAL: pb.IMAGE_DETAIL_ORIGINAL,
}
DETAIL_FROM_PROTO = {number: detail for detail, number in DETAIL_TO_PROTO.items()}


def content_to_proto(content: Content) -> pb.Content:
    """Write text or parts."""
    if isinstance(content, str):
        return pb.Content(text=content)
    return pb.Content(parts=pb.Parts(parts=[_part_to_proto(part) for part in content]))


def _part_to_proto(part: Part) -> pb.Part:
    if isinstance(part, TextPart):
        return pb.Part(text=part.text)
    return pb.Part(image=pb.ImagePart(url=part.url, detail=DETAIL_TO_PROTO[part.detail]))


def content_from_proto(content: pb.Content, place: str) -> Content:
    """Read text or parts."""
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
            return ImagePart(url=part.image.url, detail=known(DETAIL_FROM_PROTO, part.image.detail, f"{place}.detail"))
        case _:
            raise refusal(place, "is neither text nor an image")


def message_to_proto(message: HistoryMessage) -> pb.Message:
    """Write one message."""
    match message:
        case UserMessage():
            return pb.Message(user=pb.UserMessage(content=content_to_proto(message.content)))
        case AssistantMessage():
            calls = [
                pb.ToolCall(call_id=call.call_id, name=call.name, arguments=call.arguments)
                for call in message.tool_calls
            ]
            return pb.Message(assistant=pb.AssistantMessage(text=message.text, tool_calls=calls))
        case ToolMessage():
            content = content_to_proto(message.content)
            return pb.Message(tool=pb.ToolMessage(call_id=message.call_id, content=content))


def messages_from_proto(messages: Iterable[pb.Message], place: str) -> tuple[HistoryMessage, ...]:
    """Read messages in their order."""
    return tuple(_message_from_proto(message, f"{place}[{index}]") for index, message in enumerate(messages))


def _message_from_proto(message: pb.Message, place: str) -> HistoryMessage:
    match message.WhichOneof("message"):
        case "user":
            return UserMessage(content=_content_of(message.user, place))
        case "assistant":
            calls = tuple(
                ToolCall(call_id=call.call_id, name=call.name, arguments=call.arguments)
                for call in message.assistant.tool_calls
            )
            return AssistantMessage(text=message.assistant.text, tool_calls=calls)
        case "tool":
            return ToolMessage(call_id=message.tool.call_id, content=_content_of(message.tool, place))
        case _:
            raise refusal(place, "is no message that is known here")


def _content_of(message: pb.UserMessage | pb.ToolMessage, place: str) -> Content:
    require(message.HasField("content"), f"{place}.content")
    return content_from_proto(message.content, f"{place}.content")
