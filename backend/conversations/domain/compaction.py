"""When a conversation has outgrown its model's window: which of its oldest turns are left out.

Nothing is deleted: an epoch starts behind them, and its requests begin later in the log.
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
"""Of the input budget. Far apart, so that a conversation is cut rarely and in one step."""

MARGIN_PERCENT = 5
"""Of the window, because tokens are estimated before a provider has counted them."""

MAX_CONTEXT_BYTES = 65_536
"""Of the context messages in one epoch behind its first; beyond it the context is said anew, in an epoch that holds
it once. The first does not count: where it is long by itself, to say it again would make nothing shorter."""

TOOLS_TOKENS = 600
"""About what the schemas of our own tools take."""


class Load(Value):
    """What a request carries beside the log; `needs_calls` where its input answers calls at the log's end.

    `given` is history that the input brings. The dynamic context takes `context_tokens`, and `restated_tokens` behind
    a cut, where all of it is said anew.
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
        """Estimate all of it but the context."""
        current = 0 if self.current is None else message_tokens(UserMessage(content=self.current))
        given = sum(map(message_tokens, self.given))
        return estimate_tokens(self.system_prompt) + given + current + self.tools_tokens


def input_budget_tokens(card: ModelCard) -> int:
    """Return how many tokens a request to this model may carry."""
    window = card.context_window_tokens
    return max(0, window - card.max_output_tokens - window * MARGIN_PERCENT // 100)


class Cut(Value):
    """Where a conversation begins from now on; `restates`: what its context messages said is said anew, once."""

    begins_at: int
    restates: bool


def compacted(sent: Sequence[Entry], load: Load, card: ModelCard, reset: Reset) -> Cut | None:
    """Return where the conversation is to begin from now on, or None where it may stay as it is.

    `sent` is what a request would carry. The cut is where a turn of the user begins, so that no result stands
    without its call. Context messages before it stay where they are, at the head of the request, which a provider's
    cache then still begins with. Where that is shorter by half, or where they are over their bound, they are said anew:
    with a message of the user only, as nothing is said without one.

    Raises:
        ContextTooLong: not even the current message alone fits.
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
            f"This turn needs about {least} tokens; the model takes {budget} in a request.", param="input"
        )
    low_enough = (at for at, kept in cuts if (fixed + said + kept) * 100 <= budget * TARGET_PERCENT)
    begins_at = next(low_enough, cuts[-1][0] if cuts else None)
    return Cut(begins_at=begins_at, restates=restates) if begins_at is not None else None


_Sized = tuple[Entry, int]


def _sizes(sent: Sequence[Entry]) -> tuple[int, list[_Sized]]:
    """Return the tokens of the context messages together, and the other entries, each with its own."""
    context, turns = 0, list[_Sized]()
    for entry in sent:
        size = message_tokens(entry.message) if entry.message is not None else 0
        if entry.kind is EntryKind.DYNAMIC_CONTEXT:
            context += size
        else:
            turns.append((entry, size))
    return context, turns


def _cuts(turns: Sequence[_Sized]) -> list[tuple[int, int]]:
    """Return the positions where a turn of the user begins, with the tokens from there on."""
    cuts: list[tuple[int, int]] = []
    kept = sum(size for _, size in turns)
    for _, group in groupby(turns, lambda sized: sized[0].turn_id):
        turn = list(group)
        first = turn[0][0]
        if first.kind in (EntryKind.USER, EntryKind.NOTICE) and first is not turns[0][0]:
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
