"""Calls that a model makes again and again with the same arguments."""

import json
from collections import Counter
from collections.abc import Iterable

from chat_shell.tools.domain.tool_calls import ArgumentsRejected, decode_arguments
from shared.models.messages import AssistantMessage, Message, ToolCall

MAX_EQUAL_CALLS = 3
"""How many model calls of a turn may make the same call. A tool that is asked how far something is may be asked again;
a model that goes round in a circle finds out of it when it is told so."""


class EarlierCalls:
    """Counts, for each call, the answers of a turn that have made it."""

    def __init__(self, messages: Iterable[Message]) -> None:
        said = (message for message in messages if isinstance(message, AssistantMessage))
        self._counted = Counter(key for message in said for key in {_key(call) for call in message.tool_calls})

    def is_exhausted(self, call: ToolCall) -> bool:
        """Whether a call has been made as often as it may."""
        return self._counted[_key(call)] >= MAX_EQUAL_CALLS


def _key(call: ToolCall) -> tuple[str, str]:
    """Return what equal calls have in common: blanks and the order of keys make no difference."""
    try:
        arguments = json.dumps(decode_arguments(call.arguments), sort_keys=True)
    except (ArgumentsRejected, RecursionError):
        arguments = call.arguments
    return call.name, arguments
