"""Choose the positions of a prompt's cache marks, for providers that cache only up to marks that the caller sets.

An adapter adds marks and never text.
"""

from collections.abc import Iterator, Sequence

from chat_shell.models.anthropic_messages.thinking import ANTHROPIC_MESSAGES
from chat_shell.models.transport.kept_items import pieces_of
from shared.models.messages import AssistantMessage, Message, SystemMessage
from shared.models.values import Value

MAX_MARKS = 4
"""The largest number of marks in a request."""

LOOKBACK_BLOCKS = 20
"""How far behind a mark a provider looks for a position that an earlier request has marked."""

STRIDE_BLOCKS = 15
"""How far apart marks of a long turn stand: less than the lookback, so that calls side by side leave no gap."""


class CacheMarks(Value):
    """Marks of a prompt: at the end of tools and system message, and behind messages, whose indexes ascend."""

    on_header: bool
    messages: tuple[int, ...]


def cache_marks(messages: Sequence[Message], stored: int, *, has_tools: bool) -> CacheMarks:
    """Place the marks of a model call.

    `messages` are those that the turn's next call repeats, a reminder at the end left out. The first `stored` of
    them are the system message and the history; what follows is the turn's. Of a very long turn the newest marks
    are kept: the calls before have marked what lies behind them.
    """
    header = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    on_header = has_tools or header > 0
    places = [end - 1 for end in _ends(messages, stored) if end > header]
    return CacheMarks(on_header=on_header, messages=tuple(places[-(MAX_MARKS - on_header) :]))


def block_count(message: Message) -> int:
    """Count the blocks that a provider sees in a message: parts, and each tool call by itself."""
    if isinstance(message, AssistantMessage):
        return max(1, sum(1 for _ in pieces_of(message, ANTHROPIC_MESSAGES)))
    return 1 if isinstance(message.content, str) else max(1, len(message.content))


def _ends(messages: Sequence[Message], stored: int) -> Iterator[int]:
    """Yield, ascending and once each, the end of the stored messages, every stride of the turn, and its end."""
    if 0 < stored < len(messages):
        yield stored
    blocks = 0
    for place, message in enumerate(messages[stored:], stored):
        blocks += block_count(message)
        if blocks > STRIDE_BLOCKS and place > stored:
            yield place
            blocks = block_count(message)
    if messages:
        yield len(messages)
