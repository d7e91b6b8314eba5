"""The messages that a turn sends to a model, in their order: system, history, dynamic context, current message.

chat_shell sends this order; the backend measures, shows and compares it.
"""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shared.errors import InvalidRequest
from shared.models.execution import DynamicBlock, ExecutionRequest, Purpose
from shared.models.messages import Content, HistoryMessage, Message, SystemMessage, TextPart, UserMessage

BLOCK_SEPARATOR = "\n\n"


def join_blocks(blocks: Iterable[str | None]) -> str:
    """Join texts with a blank line between them; a blank one adds nothing, not even a separator."""
    return BLOCK_SEPARATOR.join(block for block in blocks if block and not block.isspace())


def context_text(kb_meta_prompt: str, dynamic_blocks: Iterable[DynamicBlock]) -> str:
    """Return the content of the context message; "" where there is nothing to say."""
    return join_blocks((kb_meta_prompt, *(block.text for block in dynamic_blocks)))


def system_messages(system_prompt: str) -> tuple[SystemMessage, ...]:
    """Return the messages before the history: none where the system prompt is empty."""
    return (SystemMessage(content=system_prompt),) if system_prompt else ()


def build_messages(
    system_prompt: str,
    history: Iterable[HistoryMessage],
    dynamic_context: str | None,
    current: UserMessage | None,
) -> tuple[Message, ...]:
    """Return the messages in their order, without an empty system prompt and without an empty or blank context."""
    messages: list[Message] = [*system_messages(system_prompt), *history]
    if dynamic_context and not dynamic_context.isspace():
        messages.append(UserMessage(content=dynamic_context))
    if current is not None:
        messages.append(current)
    return tuple(messages)


def messages_of_request(request: ExecutionRequest) -> tuple[Message, ...]:
    """Return the messages of a turn; a turn that continues from tool results has no context and no time suffix.

    Raises:
        InvalidRequest: `time_zone` is not an IANA name.
    """
    return build_messages(request.system_prompt, request.history, context_of_request(request), _current(request))


def context_of_request(request: ExecutionRequest) -> str:
    """Return the content of the context message of a turn; "" where it has none."""
    return "" if request.prompt is None else context_text(request.kb_meta_prompt, request.dynamic_blocks)


def context_index(request: ExecutionRequest) -> int:
    """Return the index at which the context message of a turn stands among its messages, where it has one."""
    return len(system_messages(request.system_prompt)) + len(request.history)


def with_time_suffix(content: Content, sent_at: datetime, time_zone: str) -> Content:
    """Append the local time to a user message: to its text, or as a last text part where it has parts.

    No other part of a prompt depends on the time.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: `time_zone` is not an IANA name.
    """
    suffix = _suffix(sent_at, time_zone)
    if isinstance(content, str):
        return content + suffix
    return (*content, TextPart(text=suffix))


def without_time_suffix(content: Content, sent_at: datetime, time_zone: str) -> Content:
    """Return the content to which `with_time_suffix` appended the local time."""
    suffix = _suffix(sent_at, time_zone)
    if isinstance(content, str):
        return content.removesuffix(suffix)
    return content[:-1] if content and content[-1] == TextPart(text=suffix) else content


def _suffix(sent_at: datetime, time_zone: str) -> str:
    local = sent_at.astimezone(ZoneInfo(time_zone))
    return f"\n\n<time>{local:%Y-%m-%d %H:%M} {time_zone}</time>"


def _current(request: ExecutionRequest) -> UserMessage | None:
    if request.prompt is None:
        return None
    if request.purpose is Purpose.SUMMARY:
        return UserMessage(content=request.prompt)
    try:
        content = with_time_suffix(request.prompt, request.sent_at, request.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a directory's name is an OSError
        raise InvalidRequest("not the name of a time zone", param="time_zone") from error
    return UserMessage(content=content)
