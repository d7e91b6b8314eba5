"""The messages that a turn sends to a model, in their order: system, history, dynamic context, current message.

chat_shell sends this order; the backend measures, shows and compares it.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
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


@lru_cache(maxsize=256)
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


INSTRUCTIONS_REPLACED = "The following custom instructions replace all that earlier messages gave:"
INSTRUCTIONS_GONE = "The custom instructions of earlier messages no longer apply."
FILES_REPLACED = "The following project files replace all that earlier messages showed:"
FILES_GONE = "The project files of earlier messages are no longer part of this conversation."

INSTRUCTIONS_STAND = "The custom instructions further above in this conversation still apply."
FILES_STAND = "The project files further above in this conversation are still part of it."
BOTH_STAND = "The custom instructions and the project files further above in this conversation still apply."

TOOL_RESULT_ELIDED = "[The result of this call was left out; the same call gives it again.]"
"""Stands in the place of a tool's result; the call and its arguments stay."""


LAST_CALL = (
    "No further tool call is possible in this turn. Answer from what has been found, and name what could not be found."
)
"""Ends the last model call of a turn that has called tools."""

CITATIONS = (
    "Statements that rest on a document of the results carry its number in square brackets directly behind them, such "
    "as [3], or [3][7] for two documents. Only numbers that stand in results are cited."
)
"""Ends each model call of a turn from the first result with numbered documents to the turn's end."""

SUPERSEDED = "Reminders of earlier messages no longer apply."
"""Begins a reminder that stays, where one before it says what no longer holds."""

_BEGIN, _END = "<system-reminder>\n", "\n</system-reminder>"


def reminder_text(parts: Iterable[str]) -> str:
    """Return the text of the reminder with its parts in their order; "" where all of them are empty or blank."""
    text = join_blocks(parts)
    return f"{_BEGIN}{text}{_END}" if text else ""


def read_reminder(message: Message) -> str | None:
    """Return what a reminder says; None for any other message, as those of users end with their time."""
    content = message.content if message.role == "user" else None
    if not isinstance(content, str) or not (content.startswith(_BEGIN) and content.endswith(_END)):
        return None
    return content[len(_BEGIN) : -len(_END)]
