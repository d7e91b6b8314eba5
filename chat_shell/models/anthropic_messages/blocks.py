"""The messages of a conversation as the Messages API wants them: alternating, in blocks, with cache marks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import orjson

from chat_shell.models.anthropic_messages.thinking import ANTHROPIC_MESSAGES
from chat_shell.models.transport.kept_items import pieces_of
from shared.errors import InvalidRequest
from shared.models.messages import (
    AssistantMessage,
    Content,
    ImagePart,
    Message,
    OpaqueItem,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from shared.models.values import JsonObject, JsonValue

CACHE_CONTROL: JsonObject = {"type": "ephemeral"}
OPENING = "Begin."
"""What the user says where a conversation has nothing of theirs, such as one that holds only a system message."""

_THINKING = ("thinking", "redacted_thinking")
_INLINE_IMAGE = re.compile(r"data:(image/(?:jpeg|png|gif|webp));base64,([A-Za-z0-9+/]+={0,2})")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def alternate_messages(
    messages: Sequence[Message], marks: Mapping[int, JsonObject | None], *, sends_thinking: bool
) -> list[JsonObject]:
    """Return the field `messages`; `marks` are those of messages behind which the cache is written, by index.

    Neighbours of one role become one message, in which results of tools come first. Blank texts are left out, because
    the API refuses them. A message of the system inside the history stands at its place in the user's role: the API has
    no other there, and moved to the front it would change what the cache holds. Where no user's message comes first,
    `OPENING` does, because the API refuses a conversation that the user does not begin.

    Raises:
        InvalidRequest: an image is neither at an address nor one of the API's kinds in base64.
    """
    turns: list[tuple[str, list[JsonObject]]] = []
    for index, message in enumerate(messages):
        if index == 0 and isinstance(message, SystemMessage):
            continue
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = list(_blocks(message, sends_thinking))
        if blocks and not turns and role == "assistant":
            turns.append(_build_opening())
        if blocks and turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
        if index in marks and turns:
            _mark(turns[-1][1], marks[index])
    return [{"role": role, "content": _results_first(blocks)} for role, blocks in turns or [_build_opening()]]


def _build_opening() -> tuple[str, list[JsonObject]]:
    return "user", [{"type": "text", "text": OPENING}]


def _mark(blocks: list[JsonObject], mark: JsonValue) -> None:
    """Mark the last block that may carry a mark; thinking may not."""
    place = next((place for place in reversed(range(len(blocks))) if blocks[place]["type"] not in _THINKING), None)
    if place is not None:
        blocks[place] = blocks[place] | {"cache_control": mark}


def _results_first(blocks: list[JsonObject]) -> list[JsonObject]:
    return sorted(blocks, key=lambda block: block["type"] != "tool_result") if len(blocks) > 1 else blocks


def _blocks(message: Message, sends_thinking: bool) -> Iterator[JsonObject]:
    match message:
        case AssistantMessage():
            yield from _encode_said(message, sends_thinking)
        case ToolMessage():
            content = message.content if isinstance(message.content, str) else list(_parts(message.content))
            yield {"type": "tool_result", "tool_use_id": fit_call_id(message.call_id), "content": content}
        case _:
            yield from _parts(message.content)


def _encode_said(message: AssistantMessage, sends_thinking: bool) -> Iterator[JsonObject]:
    for piece in pieces_of(message, ANTHROPIC_MESSAGES):
        match piece:
            case OpaqueItem():
                if sends_thinking:
                    yield orjson.loads(piece.content)
            case ToolCall():
                arguments = _input(piece.arguments)
                yield {
                    "type": "tool_use",
                    "id": fit_call_id(piece.call_id),
                    "name": piece.name,
                    "input": arguments,
                }
            case str():
                yield from _text(piece)


def _parts(content: Content) -> Iterator[JsonObject]:
    for part in (content,) if isinstance(content, str) else content:
        yield from _part(part)


def _part(part: str | Part) -> Iterator[JsonObject]:
    if isinstance(part, ImagePart):
        yield {"type": "image", "source": _source(part.url)}
    else:
        yield from _text(part if isinstance(part, str) else part.text)


def _text(text: str) -> Iterator[JsonObject]:
    if text and not text.isspace():
        yield {"type": "text", "text": text}


def _source(url: str) -> JsonObject:
    if url.startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    inline = _INLINE_IMAGE.fullmatch(url)
    if inline is None:
        kinds = "must be an http(s) address, or a JPEG, PNG, GIF or WebP image as a data URL in base64"
        raise InvalidRequest(f"image_url: {kinds}", param="input")
    return {"type": "base64", "media_type": inline[1], "data": inline[2]}


def fit_call_id(given: str) -> str:
    """Return the id of a tool call in the characters that the API takes; other ids are hashed, each in one way."""
    return given if _CALL_ID.fullmatch(given) else f"call_{blake2b(given.encode(), digest_size=12).hexdigest()}"


def _input(arguments: str) -> JsonValue:
    """Return arguments as the object that the API wants, byte for byte as the model wrote them.

    What is no object is wrapped as the API's guide to streamed tool input says.
    """
    try:
        is_object = isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        is_object = False
    return orjson.Fragment(arguments) if is_object else {"INVALID_JSON": arguments}
