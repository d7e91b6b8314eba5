"""Choose the oldest turns that are left out when a conversation no longer fits its model's context window.

Nothing is deleted: a new epoch starts, whose requests begin at a later position of the log.
"""

from collections.abc import Sequence
from itertools import groupby

from backend.conversations.domain.conversation_log import Entry, EntryKind, Reset
from shared.errors import ContextTooLong
from shared.models.events import ModelCard
from shared.models.messages import Content, HistoryMessage, UserMessage
from shared.models.values import Value
from shared.tokens import estimate_tokens, message_tokens

TRIGGER_PERCENT = 75
TARGET_PERCENT = 45
"""Percent of the input budget. They lie far apart, so that a conversation is cut rarely."""

MARGIN_PERCENT = 5
"""Percent of the window, kept free because tokens are estimated."""

MAX_CONTEXT_BYTES = 65_536
"""The limit for all context messages of an epoch except the first. Above it, a new epoch starts that states the whole
context once. The first does not count, because restating a context that is long by itself would not shorten it."""

TOOLS_TOKENS = 600
"""The estimated size of the schemas of our own tools."""


class Load(Value):
    """The parts of a request that are not in the log yet.

    `needs_calls` is true where the input answers tool calls at the end of the log. `given` is history that the input
    contains. `context_tokens` is the size of the dynamic context, `restated_tokens` its size where all of it is
    restated.
    """

    system_prompt: str
    current: Content | None
    needs_calls: bool
    given: tuple[HistoryMessage, ...] = ()
    tools_tokens: int = TOOLS_TOKENS
    context_tokens: int = 0
    restated_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of all parts except the dynamic context."""
        current = 0 if self.current is None else message_tokens(UserMessage(content=self.current))
        given = sum(map(message_tokens, self.given))
        return estimate_tokens(self.system_prompt) + given + current + self.tools_tokens


def input_budget_tokens(card: ModelCard) -> int:
    """Return the maximum number of tokens in a request to this model."""
    window = card.context_window_tokens
    return max(0, window - card.max_output_tokens - window * MARGIN_PERCENT // 100)


class Cut(Value):
    """The log position at which later requests begin; `restates` is true where the whole context is restated."""

    begins_at: int
    restates: bool


def compacted(sent: Sequence[Entry], load: Load, card: ModelCard, reset: Reset) -> Cut | None:
    """Return where later requests of the conversation begin, or None where nothing has to be left out.

    `sent` are the entries that a request would contain. The cut is at the beginning of a user's turn, so that no tool
    result is sent without its call. Context messages before the cut stay at the beginning of the request, so that it
    keeps the prefix that the provider has cached. The context is restated instead where that at least halves its size,
    or where the context messages exceed `MAX_CONTEXT_BYTES`; this needs a current message, because a turn without one
    sends no context.

    Raises:
        ContextTooLong: the request does not fit even with the latest possible cut.
    """
    budget, fixed = input_budget_tokens(card), load.tokens
    context, turns = _sizes(sent)
    needed = fixed + load.context_tokens + context + sum(size for _, size in turns)
    is_over_bound = load.current is not None and _context_bytes(sent) > MAX_CONTEXT_BYTES
    if needed * 100 <= budget * TRIGGER_PERCENT:
        return Cut(begins_at=reset.begins_at, restates=True) if is_over_bound else None
    is_longer = load.current is not None and context + load.context_tokens > 2 * load.restated_tokens
    restates = is_over_bound or is_longer
    said = load.restated_tokens if restates else load.context_tokens + context
    cuts = _cuts(turns)
    if sent and not load.needs_calls and (turns or restates):
        cuts.append((sent[-1].position + 1, 0))
    least = fixed + said + cuts[-1][1] if cuts else needed
    if least > budget:
        raise ContextTooLong(
            f"This turn needs about {least} tokens; the model takes {budget} in a request; use a shorter input.",
            param="input",
        )
    low_enough = (at for at, kept in cuts if (fixed + said + kept) * 100 <= budget * TARGET_PERCENT)
    begins_at = next(low_enough, cuts[-1][0] if cuts else None)
    return Cut(begins_at=begins_at, restates=restates) if begins_at is not None else None


_Sized = tuple[Entry, int]


def _sizes(sent: Sequence[Entry]) -> tuple[int, list[_Sized]]:
    """Return the number of tokens of all context messages, and each other entry with its number of tokens."""
    context, turns = 0, list[_Sized]()
    for entry in sent:
        size = message_tokens(entry.message) if entry.message is not None else 0
        if entry.kind is EntryKind.DYNAMIC_CONTEXT:
            context += size
        else:
            turns.append((entry, size))
    return context, turns


def _cuts(turns: Sequence[_Sized]) -> list[tuple[int, int]]:
    """Return the positions at which a user's turn begins, each with the number of tokens from there to the end."""
    cuts: list[tuple[int, int]] = []
    kept = sum(size for _, size in turns)
    for _, group in groupby(turns, lambda sized: sized[0].turn_id):
        turn = list(group)
        first = turn[0][0]
        if first.kind in (EntryKind.USER, EntryKind.NOTICE, EntryKind.SYSTEM) and first is not turns[0][0]:
            cuts.append((first.position, kept))
        kept -= sum(size for _, size in turn)
    return cuts


def _context_bytes(sent: Sequence[Entry]) -> int:
    context = EntryKind.DYNAMIC_CONTEXT
    said = [
        len(entry.message.content.encode())
        for entry in sent
        if entry.kind is context and isinstance(entry.message, UserMessage) and isinstance(entry.message.content, str)
    ]
    return sum(said[1:])
