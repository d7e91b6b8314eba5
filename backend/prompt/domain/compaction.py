"""Choose the oldest turns that are left out when a conversation no longer fits its model's context window.

Nothing is deleted: a new epoch starts, whose requests begin at a later position of the log.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochState
from shared.errors import ContextTooLong
from shared.models.canonical import canonical_parts
from shared.models.events import ModelCard
from shared.models.execution import ToolDefinition
from shared.models.messages import Content, HistoryMessage, ToolMessage, UserMessage
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.tokens import estimate_tokens, message_tokens

TRIGGER_PERCENT = 75
TARGET_PERCENT = 45
"""Percent of what `count_planned_tokens` says. They lie far apart, so that a conversation is cut rarely."""

MAX_CONTEXT_BYTES = 65_536
"""The limit for all context messages of an epoch except the first. Above it, a new epoch starts that states the whole
context once. The first does not count, because restating a context that is long by itself would not shorten it."""

ELIDED_TOKENS = estimate_tokens(TOOL_RESULT_ELIDED)

TOOLS_TOKENS = 600
"""The estimated size of the schemas of our own tools."""


def tools_tokens(definitions: Sequence[ToolDefinition]) -> int:
    """Return the estimated size of the tools of a request: of ours, and of these, of its client and of tool servers."""
    return TOOLS_TOKENS + estimate_tokens(canonical_parts(definitions, ())[0].decode())


class Load(NamedTuple):
    """The parts of a request that are not in the log yet.

    `needs_end` is true where the input answers tool calls at the end of the log, or goes on with what stands there.
    `given` is history that the input contains, `blocks` the texts of an agent that the turn adds. `context_tokens` is
    the size of the dynamic context, `restated_tokens` its size where all of it is restated.
    """

    system_prompt: str
    current: Content | None
    needs_end: bool
    given: tuple[HistoryMessage, ...] = ()
    blocks: tuple[str, ...] = ()
    tools_tokens: int = TOOLS_TOKENS
    context_tokens: int = 0
    restated_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of all parts except the dynamic context."""
        current = 0 if self.current is None else message_tokens(UserMessage(content=self.current))
        given = sum(map(message_tokens, self.given))
        return self.settings_tokens + given + current

    @property
    def settings_tokens(self) -> int:
        """The estimated number of tokens of what no input can shorten."""
        blocks = sum(message_tokens(UserMessage(content=text)) for text in self.blocks if text)
        return estimate_tokens(self.system_prompt) + self.tools_tokens + blocks


def count_planned_tokens(card: ModelCard) -> int:
    """Return what all percentages are of: the input budget, or as much less as the operator's price demands."""
    priced = card.compact_from_tokens * 100 // TRIGGER_PERCENT
    return min(card.input_budget_tokens, priced or card.input_budget_tokens)


def hand_back_tokens(card: ModelCard) -> int | None:
    """Return the size of a prompt from which on a turn is handed back before its next model call; None where none is.

    With a model whose window takes nothing, nothing can be left out either. No turn is interrupted to save money.
    """
    return card.input_budget_tokens * TRIGGER_PERCENT // 100 or None


class Cut(NamedTuple):
    """The log position at which later requests begin; `restates` is true where the whole context is restated.

    The results of tools below `elides_below` are left out, too; where that is enough, requests begin where they did.
    """

    begins_at: int
    restates: bool
    elides_below: int = 0


def find_cut(sent: Sequence[Entry], load: Load, card: ModelCard, reset: EpochState) -> Cut | None:
    """Return where later requests of the conversation begin, or None where nothing has to be left out.

    `sent` are the entries that a request would contain. The cut is at the beginning of a user's turn, so that no tool
    result is sent without its call. Context messages before the cut stay at the beginning of the request, so that it
    keeps the prefix that the provider has cached. The context is restated instead where that at least halves its size,
    or where the context messages exceed `MAX_CONTEXT_BYTES`; this needs a current message, because a turn without one
    sends no context. Where only the operator's price is exceeded, nothing moves unless that brings the target.

    Raises:
        ContextTooLong: the request does not fit even with the latest possible cut.
    """
    context, summary, turns = _sizes(sent)
    budget, planned, fixed = card.input_budget_tokens, count_planned_tokens(card), load.tokens + summary
    turns_tokens = sum(size for _, size in turns)
    needed = fixed + load.context_tokens + context + turns_tokens + _count_standing_tokens(sent, 0)
    is_over_bound = load.current is not None and _context_bytes(sent) > MAX_CONTEXT_BYTES
    uncut = Cut(begins_at=reset.begins_at, restates=True) if is_over_bound else None
    if needed * 100 <= planned * TRIGGER_PERCENT:
        return uncut
    is_longer = load.current is not None and context + load.context_tokens > 2 * load.restated_tokens
    restates = is_over_bound or is_longer
    said = load.restated_tokens if restates else load.context_tokens + context
    elides_below = _newest_begins_at(sent, needs_end=load.needs_end)
    elided = [(entry, count_elided_tokens(entry, size, elides_below)) for entry, size in turns]
    cuts = cuts_of(elided)
    elided_tokens = sum(size for _, size in elided)
    if restates or elided_tokens < turns_tokens:
        cuts.insert(0, (reset.begins_at, elided_tokens))
    if sent and not load.needs_end and (turns or restates):
        cuts.append((sent[-1].position + 1, 0))
    cuts = [(at, kept + _count_standing_tokens(sent, at)) for at, kept in cuts]
    least = fixed + said + cuts[-1][1] if cuts else needed
    if least > budget:
        standing = _count_standing_tokens(sent, sent[-1].position + 1) if sent else 0
        raise _too_long(least, load.settings_tokens + standing, budget)
    low_enough = (at for at, kept in cuts if (fixed + said + kept) * 100 <= planned * TARGET_PERCENT)
    only_costs_too_much = needed * 100 <= budget * TRIGGER_PERCENT
    begins_at = next(low_enough, cuts[-1][0] if cuts and not only_costs_too_much else None)
    if begins_at is None:
        return uncut
    return Cut(begins_at=begins_at, restates=restates, elides_below=elides_below)


def _too_long(needed: int, of_settings: int, budget: int) -> ContextTooLong:
    """Return the error about a turn that does not fit, which names what has to be shorter."""
    figures = f"This turn needs about {needed} tokens; the model takes {budget} in a request"
    if of_settings <= budget:
        return ContextTooLong(f"{figures}; use a shorter input.", param="input")
    advice = f"instructions and tools alone take {of_settings}: shorten these, or use a model with a larger window"
    return ContextTooLong(f"{figures}; {advice}.", param="model")


def count_elided_tokens(entry: Entry, size: int, below: int) -> int:
    """Return the size of an entry where the results of tools below a position are left out."""
    return ELIDED_TOKENS if entry.position < below and isinstance(entry.message, ToolMessage) else size


def _newest_begins_at(sent: Sequence[Entry], *, needs_end: bool) -> int:
    """Return where the newest turn begins: behind all that is sent, or with the turn that its input continues."""
    if not sent:
        return 0
    if not needs_end:
        return sent[-1].position + 1
    return next(entry.position for entry in sent if entry.turn_id == sent[-1].turn_id)


_Sized = tuple[Entry, int]

_FIRST_KINDS = frozenset({EntryKind.USER, EntryKind.FILE, EntryKind.NOTICE, EntryKind.SYSTEM})
"""The kinds of entries with which a user's turn begins."""


def _sizes(sent: Sequence[Entry]) -> tuple[int, int, list[_Sized]]:
    """Return the tokens of all context messages, those of a summary, and each other entry with its tokens.

    A further summary takes the place of the one that stands there, and is about as long. The statements of an agent's
    blocks, of which the newest are never left out, are in neither.
    """
    context, summary, turns = 0, 0, list[_Sized]()
    for entry in sent:
        size = message_tokens(entry.message) if entry.message is not None else 0
        if entry.kind is EntryKind.DYNAMIC_CONTEXT:
            context += size
        elif entry.kind is EntryKind.SUMMARY:
            summary += size
        elif entry.block is None:
            turns.append((entry, size))
    return context, summary, turns


def _count_standing_tokens(sent: Sequence[Entry], begins_at: int) -> int:
    """Return the tokens of the statements of an agent's blocks that a request holds which begins there."""
    stated = [entry for entry in sent if entry.block is not None and entry.message is not None]
    newest_cut = {entry.kind: entry for entry in stated if entry.position < begins_at}
    behind = [entry for entry in stated if entry.position >= begins_at]
    kept = [entry.message for entry in (*newest_cut.values(), *behind)]
    return sum(message_tokens(message) for message in kept if message is not None)


def cuts_of(turns: Sequence[_Sized]) -> list[tuple[int, int]]:
    """Return the positions at which a user's turn begins, each with the number of tokens from there to the end."""
    cuts: list[tuple[int, int]] = []
    kept = sum(size for _, size in turns)
    for _, group in groupby(turns, lambda sized: sized[0].turn_id):
        turn = list(group)
        first = turn[0][0]
        if first.kind in _FIRST_KINDS and first is not turns[0][0]:
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
