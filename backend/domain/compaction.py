"""When a conversation has outgrown its model's window: which of its oldest turns are left out.

Nothing is deleted: an epoch starts behind them, and its requests begin later in the log.
"""

from collections.abc import Sequence
from itertools import groupby

from backend.domain.conversation_log import Entry, EntryKind, Reset
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


def compacted(sent: Sequence[Entry], load: Load, card: ModelCard, reset: Reset) -> int | None:
    """Return where the conversation is to begin from now on, or None where it may stay as it is.

    `sent` is what a request would carry. The cut is where a turn of the user begins, so that no result stands
    without its call.

    Raises:
        ContextTooLong: not even the current message alone fits.
    """
    budget, fixed = input_budget_tokens(card), load.tokens
    sizes = [message_tokens(entry.message) for entry in sent if entry.message is not None]
    needed = fixed + load.context_tokens + sum(sizes)
    if needed * 100 <= budget * TRIGGER_PERCENT:
        return reset.begins_at if _context_bytes(sent) > MAX_CONTEXT_BYTES else None
    cuts = _cuts(sent, sizes)
    if sent and not load.needs_calls:
        cuts.append((sent[-1].position + 1, 0))
    needs = [(at, fixed + load.restated_tokens + kept) for at, kept in cuts]
    least = needs[-1][1] if needs else needed
    if least > budget:
        raise ContextTooLong(
            f"This turn needs about {least} tokens; the model takes {budget} in a request.", param="input"
        )
    low_enough = (at for at, need in needs if need * 100 <= budget * TARGET_PERCENT)
    return next(low_enough, cuts[-1][0] if cuts else None)


def _cuts(sent: Sequence[Entry], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the positions where a turn of the user begins, with the tokens of what is kept there.

    Context messages are not kept: behind a cut all that they said is said anew.
    """
    cuts: list[tuple[int, int]] = []
    kept = sum(size for entry, size in zip(sent, sizes, strict=True) if entry.kind is not EntryKind.DYNAMIC_CONTEXT)
    has_before = False
    for _, group in groupby(zip(sent, sizes, strict=True), lambda pair: pair[0].turn_id):
        turn = list(group)
        said = [(entry, size) for entry, size in turn if entry.kind is not EntryKind.DYNAMIC_CONTEXT]
        first = said[0][0] if said else turn[0][0]
        if first.kind in (EntryKind.USER, EntryKind.NOTICE) and has_before:
            cuts.append((turn[0][0].position, kept))
        kept -= sum(size for _, size in said)
        has_before = True
    return cuts


def _context_bytes(sent: Sequence[Entry]) -> int:
    context = EntryKind.DYNAMIC_CONTEXT
    said = [
        len(entry.message.content.encode())
        for entry in sent
        if entry.kind is context and isinstance(entry.message, UserMessage) and isinstance(entry.message.content, str)
    ]
    return sum(said[1:])
