"""The prompt of a turn: which messages go to the model, and in which order."""

from collections.abc import Iterable
from zoneinfo import ZoneInfoNotFoundError

from shared.errors import InvalidRequest
from shared.models.execution import ExecutionRequest
from shared.models.messages import HistoryMessage, Message, SystemMessage, UserMessage
from shared.prompts.blocks import join_blocks
from shared.prompts.time_suffix import with_time_suffix

__all__ = ["build_messages", "join_blocks", "prompt_of"]


def build_messages(
    system_prompt: str,
    history: Iterable[HistoryMessage],
    dynamic_context: str | None,
    current: UserMessage | None,
) -> tuple[Message, ...]:
    """Order the messages: system, history, dynamic context in one user message, current message last.

    An empty system prompt makes no message, nor does a dynamic context that is None, empty or blank.
    """
    messages: list[Message] = []
    if system_prompt:
        messages.append(SystemMessage(content=system_prompt))
    messages.extend(history)
    if dynamic_context and not dynamic_context.isspace():
        messages.append(UserMessage(content=dynamic_context))
    if current is not None:
        messages.append(current)
    return tuple(messages)


def prompt_of(request: ExecutionRequest) -> tuple[Message, ...]:
    """Compose a turn's messages; a turn that continues from tool results has no context and no suffix.

    Raises:
        InvalidRequest: `time_zone` is no IANA name.
    """
    if request.prompt is None:
        return build_messages(request.system_prompt, request.history, None, None)
    context = join_blocks((request.kb_meta_prompt, *(block.text for block in request.dynamic_blocks)))
    return build_messages(request.system_prompt, request.history, context, _current(request))


def _current(request: ExecutionRequest) -> UserMessage:
    try:
        content = with_time_suffix(request.prompt or "", request.sent_at, request.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a directory's name is an OSError
        raise InvalidRequest("not the name of a time zone", param="time_zone") from error
    return UserMessage(content=content)
