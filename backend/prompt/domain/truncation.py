"""The part of a conversation that a compaction leaves out, and the entry in its place: a summary, or a notice."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    EpochReason,
    EpochState,
    newest_epoch_state,
    part_of,
    select_sent,
    select_sent_before,
    summary_of,
)
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.responses import StoredResponse
from backend.knowledge.domain.labels import Label, Labels, join_labels
from backend.prompt.domain.compaction import TARGET_PERCENT, count_elided_tokens, count_planned_tokens, cuts_of
from shared.errors import ContextTooLong
from shared.models.events import ModelCard
from shared.models.messages import ToolMessage, UserMessage
from shared.models.values import Value
from shared.prompts.summary import COMPACTED, frame_summary
from shared.tokens import message_tokens

SUMMARY_PERCENT = 10
"""Percent of what `count_planned_tokens` says that a summary may take: with the target far below the next trigger."""

MAX_SUMMARY_TOKENS = 4_000

_Sized = tuple[Entry, int]
"""An entry and the estimated tokens of its message."""


class Truncation(Value):
    """The entries that a compaction leaves out, as requests held them before, and the reset that leaves them out.

    `sent_by` is the reset under which they were sent. `begins_epoch` says that no entry of the log has `reset` yet.
    """

    entries: tuple[Entry, ...]
    sent_by: EpochState
    reset: EpochState
    begins_epoch: bool

    @property
    def tokens(self) -> int:
        """The estimated size of what is left out."""
        return sum(message_tokens(entry.message) for entry in self.entries if entry.message is not None)


class PromptBudget(NamedTuple):
    """What a request of a turn may hold, and what of each is no part of the log: its system message and its tools.

    `prompt_tokens` is the size of the prompt that is too long, as its provider counts.
    """

    card: ModelCard
    fixed_tokens: int
    prompt_tokens: int = 0

    def budget_tokens(self, sent_tokens: int) -> int:
        """Return how many estimated tokens a request may hold: fewer where the provider counts more than we do."""
        budget, estimate = self.card.input_budget_tokens, self.fixed_tokens + sent_tokens
        return budget * estimate // self.prompt_tokens if self.prompt_tokens > estimate else budget


def summary_limit_tokens(card: ModelCard) -> int:
    """Return how long a summary may be."""
    bound = min(count_planned_tokens(card) * SUMMARY_PERCENT // 100, MAX_SUMMARY_TOKENS)
    return max(1, min(bound, card.max_output_tokens))


def find_left_out_by_input(log: Sequence[Entry], turn_id: str) -> Truncation | None:
    """Return what the epoch that a turn's input began has left out, where no summary stands in its place yet."""
    first = next((entry.position for entry in log if entry.turn_id == turn_id), len(log))
    own = newest_epoch_state(log[first:])
    before = newest_epoch_state(log[:first])
    if own.begins_at <= before.begins_at or own.summary_at != before.summary_at:
        return None
    sent_by = before
    if own.reason is not EpochReason.COMPACTION:
        # What else has changed may forbid some of what was sent.
        changed = {"begins_at": before.begins_at, "summary_at": before.summary_at, "elides_below": before.elides_below}
        sent_by = own.model_copy(update=changed)
    entries = select_sent_before(select_sent(log[:first], sent_by), own.begins_at)
    return Truncation(entries=entries, sent_by=sent_by, reset=own, begins_epoch=False)


def leave_out_of_running(log: Sequence[Entry], turn_id: str, room: PromptBudget) -> Truncation | None:
    """Return what is left out so that a turn can go on; None where nothing more can be left out.

    The results of earlier turns go first, then these turns, at the beginning of a user's turn; then the results of the
    running turn's tools, the oldest first. Those that the model has not seen yet go last, and only where the request
    would not fit otherwise.

    Raises:
        ContextTooLong: it does not fit even so.
    """
    reset = newest_epoch_state(log)
    # A long log takes milliseconds to measure, so it is measured once.
    sent = [(entry, message_tokens(entry.message)) for entry in select_sent(log, reset) if entry.message is not None]
    first = next((entry.position for entry, _ in sent if entry.turn_id == turn_id), len(log))
    fixed, budget = room.fixed_tokens, room.budget_tokens(sum(size for _, size in sent))
    begins_at = _cut(sent, first, reset, budget * TARGET_PERCENT // 100 - fixed)
    kept = [(entry, size) for entry, size in sent if entry.position >= begins_at or _stays(entry)]
    elides_below = _elision(kept, first, fixed, budget)
    if (begins_at, elides_below) == (reset.begins_at, reset.elides_below):
        return None
    changed = {"reason": EpochReason.COMPACTION, "begins_at": begins_at, "elides_below": elides_below}
    entries = select_sent_before([entry for entry, _ in sent], begins_at) if begins_at > reset.begins_at else ()
    return Truncation(entries=entries, sent_by=reset, reset=reset.model_copy(update=changed), begins_epoch=True)


def summary_entry(
    left_out: Truncation, text: str | None, log: Sequence[Entry], response: StoredResponse, now: datetime
) -> tuple[Entry, ...]:
    """Return the entry that stands in the place of what was left out; `text` is None where there is no summary of it.

    `response` is that of the turn whose model was asked for the summary.

    Where an epoch has announced what it left out, or only results of tools are left out, no notice is needed: there is
    no entry then, or one without a message.
    """
    if text is None and not left_out.begins_epoch:
        return ()
    position, before = len(log), summary_of(log, left_out.sent_by)
    message = None
    if text is not None:
        message = UserMessage(content=frame_summary(text))
    elif left_out.entries:
        message = UserMessage(content="\n\n".join([*map(_text_of, before), COMPACTED]))
    at = position if message is not None else left_out.reset.summary_at
    entry = Entry(
        position=position,
        epoch=log[-1].epoch + left_out.begins_epoch,
        # A part of its own: a turn that becomes void takes no summary of others with it.
        turn_id=part_of(response.id, position),
        kind=EntryKind.SUMMARY if message is not None else EntryKind.VOID,
        message=message,
        created_at=now,
        label=labels_of_omission(left_out, log),
        summarised=_agents(left_out, before if text is None else left_out.entries, response if text else None),
        reset=left_out.reset.model_copy(update={"summary_at": at}),
    )
    return (entry,)


def _cut(sent: Sequence[_Sized], first: int, reset: EpochState, target_tokens: int) -> int:
    """Return where requests begin from now on: no later than the turn that begins at the position `first`."""
    stays = sum(size for entry, size in sent if _stays(entry))
    turns = [(entry, count_elided_tokens(entry, size, first)) for entry, size in sent if not _stays(entry)]
    at = reset.begins_at
    for begins_at, kept in ((at, sum(size for _, size in turns)), *cuts_of(turns)):
        if begins_at > first:
            break
        at = begins_at
        if stays + kept <= target_tokens:
            break
    return at


def _elision(kept: Sequence[_Sized], first: int, fixed_tokens: int, budget: int) -> int:
    """Return the position below which results are left out, so that the entries fit."""
    needed = fixed_tokens + sum(count_elided_tokens(entry, size, first) for entry, size in kept)
    own = [(entry, size) for entry, size in kept if entry.position >= first and isinstance(entry.message, ToolMessage)]
    spoken = [entry.position for entry, _ in kept if entry.kind is EntryKind.ASSISTANT]
    unseen_from = spoken[-1] if spoken else first
    below = first
    for entry, size in own[:-1]:
        is_seen = entry.position < unseen_from
        if needed * 100 <= budget * (TARGET_PERCENT if is_seen else 100):
            break
        needed -= size - count_elided_tokens(entry, size, entry.position + 1)
        below = entry.position + 1
    if needed > budget:
        raise ContextTooLong(f"This turn needs about {needed} tokens; the model takes {budget} in a request.")
    return below


def _stays(entry: Entry) -> bool:
    return entry.kind in (EntryKind.SUMMARY, EntryKind.DYNAMIC_CONTEXT) or entry.block is not None


def _text_of(entry: Entry) -> str:
    message = entry.message
    return message.content if isinstance(message, UserMessage) and isinstance(message.content, str) else ""


def labels_of_omission(left_out: Truncation, log: Sequence[Entry]) -> Labels:
    """Join the labels of all turns of which a text is left out; a turn has them on its first entries only.

    Of what was withheld the summary has been made without its text.
    """
    turns = frozenset(entry.turn_id for entry in left_out.entries).difference(left_out.sent_by.withheld)
    found = [label for entry in log if entry.turn_id in turns for label in entry.label]
    return join_labels(list[Label](found))


def _agents(left_out: Truncation, shown: Iterable[Entry], asked_by: StoredResponse | None) -> tuple[AgentRef, ...]:
    """Return the agents whose words a summary may repeat: those of the entries that it was made from.

    Those of the turn that asked for it are in the system message where its agent opens that.
    """
    withheld = frozenset(left_out.sent_by.withheld)
    found = frozenset([agent for entry in shown if entry.turn_id not in withheld for agent in entry.agents])
    use = asked_by.preset_use if asked_by is not None and left_out.reset.opening_of else None
    return tuple(sorted(found.union([use.agent] if use is not None else ()), key=lambda agent: agent.id))
