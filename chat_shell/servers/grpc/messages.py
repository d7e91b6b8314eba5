"""The bytes of gRPC messages to values and back; bytes which are no message are the caller's error."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from shared.errors import InternalError, InvalidRequest
from shared.message_size import SHORT_MESSAGE_BYTES
from shared.models.events import ExecutionEvent
from shared.wire import event_to_proto

M = TypeVar("M", bound=Message)
T = TypeVar("T")


async def decode_message(kind: type[M], convert: Callable[[M], T], body: bytes) -> T:
    """Decode a message, a long one in a thread: 60 MB take 40 ms in protobuf and up to 400 ms to become a value.

    Raises:
        InvalidRequest: the bytes are no message of this kind, or no such value.
    """

    def decode_body() -> T:
        try:
            return convert(kind.FromString(body))
        except DecodeError as error:
            raise InvalidRequest(f"The request is no {kind.DESCRIPTOR.full_name} in valid UTF-8.") from error

    return await asyncio.to_thread(decode_body) if len(body) > SHORT_MESSAGE_BYTES else decode_body()


def encode_event(event: ExecutionEvent) -> bytes:
    """Write an event.

    Raises:
        InternalError: it holds what cannot be written.
    """
    try:
        return event_to_proto(event).SerializeToString()
    except InvalidRequest as error:
        raise InternalError("An event of the turn could not be written.") from error
