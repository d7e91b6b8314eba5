"""Decide whether a turn continues the current epoch of its conversation or starts a new one."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import (
    Entry,
    EpochReason,
    EpochState,
    find_stated_modes,
    newest_epoch_state,
    select_sent,
)
from backend.conversations.domain.responses import Conversation, ConversationSettings
from backend.prompt.domain.compaction import Load, find_cut
from backend.prompt.domain.listed_files import find_left_out
from backend.prompt.domain.system_message import PLAIN_FORM, PromptForm
from shared.models.canonical import canonical_parts
from shared.models.events import ModelCard
from shared.models.execution import AccessMode
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION

CONTEXT_STANDS = frozenset({EpochReason.MODEL_CHANGED, EpochReason.TOOLS_CHANGED, EpochReason.INSTRUCTIONS_CHANGED})
"""Reasons for an epoch that keeps the context messages sent so far, because they are still true. A conversation that
returns to an earlier model can then use what that provider still has in its cache."""


class CallerAccess(NamedTuple):
    """What the caller may read now.

    `mode` is the strictest mode of the bases in scope, `modes` the mode of each by the base's id. `withheld` holds the
    ids of the turns whose text the caller may not read, with `withholds_users` that of users included. `has_lost_agent`
    says that the log states words of an agent that the caller may no longer use.
    """

    mode: AccessMode
    withheld: tuple[str, ...]
    modes: dict[str, AccessMode]
    withholds_users: bool = False
    has_lost_agent: bool = False


class Epoch(NamedTuple):
    """The epoch of a turn; `starts` is true where it starts with this turn."""

    number: int
    reset: EpochState
    starts: bool


def plan_epoch(
    conversation: Conversation,
    log: Sequence[Entry],
    settings: ConversationSettings,
    access: CallerAccess,
    form: PromptForm = PLAIN_FORM,
    *,
    reads_files: bool = False,
) -> Epoch:
    """Continue the current epoch, or start a new one for the first reason that applies.

    Once a conversation has a file that a tool must read, which `reads_files` says, or which a running turn has left
    out, the tool stays: each change of the tools costs the whole prefix.
    """
    last = newest_epoch_state(log)
    is_same_access = _is_same_access(log, last, access)
    reads_files = reads_files or last.reads_files or _leaves_out_files(log, last, access)
    changed = _find_changed_setting(conversation, settings) or _find_changed_form(last, form)
    if changed is None and reads_files != last.reads_files:
        changed = EpochReason.TOOLS_CHANGED
    reason = changed or _other_reason(last, is_same_access=is_same_access)
    if reason is None:
        return Epoch(number=conversation.epoch, reset=last, starts=False)
    stands = reason in CONTEXT_STANDS and _is_current(last) and is_same_access
    reset = EpochState(
        reason=reason,
        begins_at=last.begins_at,
        says_from=last.says_from if stands else _length(log),
        withheld=access.withheld,
        withholds_users=access.withholds_users,
        access_mode=access.mode,
        template_version=TEMPLATE_VERSION,
        reads_files=reads_files,
        summary_at=last.summary_at,
        elides_below=last.elides_below,
        blocks_from=_length(log) if access.has_lost_agent or last.placement != form.placement else last.blocks_from,
        **form._asdict(),
    )
    step = 0 if reason is EpochReason.NEW_CONVERSATION else 1
    return Epoch(number=conversation.epoch + step, reset=reset, starts=True)


def compact(epoch: Epoch, log: Sequence[Entry], load: Load, card: ModelCard) -> Epoch:
    """Leave out the oldest turns, or results of tools alone, where the conversation has outgrown its model.

    Raises:
        ContextTooLong: the part that must be sent does not fit the window.
    """
    cut = find_cut(select_sent(log, epoch.reset), load, card, epoch.reset)
    if cut is None:
        return epoch
    says_from = _length(log) if cut.restates else epoch.reset.says_from
    left_out = find_left_out(log, epoch.reset.model_copy(update={"begins_at": cut.begins_at}))
    changed = {
        "begins_at": cut.begins_at,
        "says_from": says_from,
        "elides_below": max(cut.elides_below, epoch.reset.elides_below),
        "reads_files": epoch.reset.reads_files or bool(left_out),
    }
    if epoch.starts:
        return epoch._replace(reset=epoch.reset.model_copy(update=changed))
    changes = {"reason": EpochReason.COMPACTION, **changed}
    return Epoch(number=epoch.number + 1, reset=epoch.reset.model_copy(update=changes), starts=True)


def _leaves_out_files(log: Sequence[Entry], last: EpochState, access: CallerAccess) -> bool:
    if not log:
        return False
    shown = last.model_copy(update={"withheld": access.withheld, "withholds_users": access.withholds_users})
    return bool(find_left_out(log, shown))


def _find_changed_form(last: EpochState, form: PromptForm) -> EpochReason | None:
    is_same = (last.opening_of, last.placement) == (form.opening_of, form.placement)
    return None if is_same else EpochReason.INSTRUCTIONS_CHANGED


def with_unknown_tools(epoch: Epoch) -> Epoch:
    """Begin an epoch where nothing tells which tools the one before had: they may be others."""
    if epoch.starts:
        return epoch
    reset = epoch.reset.model_copy(update={"reason": EpochReason.TOOLS_CHANGED})
    return Epoch(number=epoch.number + 1, reset=reset, starts=True)


def without_statements(epoch: Epoch, log: Sequence[Entry]) -> Epoch:
    """Leave out all that the log states of an agent's blocks; the turn states them anew."""
    changes = {"blocks_from": _length(log)}
    if epoch.starts:
        return epoch._replace(reset=epoch.reset.model_copy(update=changes))
    changed = {"reason": EpochReason.COMPACTION, **changes}
    return Epoch(number=epoch.number + 1, reset=epoch.reset.model_copy(update=changed), starts=True)


def _other_reason(last: EpochState, *, is_same_access: bool) -> EpochReason | None:
    if not _is_current(last):
        return EpochReason.TEMPLATE_VERSION
    if not is_same_access:
        return EpochReason.ACCESS_CHANGED
    return None


def _is_current(last: EpochState) -> bool:
    return last.template_version in KNOWLEDGE_SECTIONS


def _is_same_access(log: Sequence[Entry], last: EpochState, access: CallerAccess) -> bool:
    """Return whether the epoch may continue with this access: an epoch describes each base in one mode only."""
    before = (last.access_mode, last.withheld, last.withholds_users)
    if access.has_lost_agent or before != (access.mode, access.withheld, access.withholds_users):
        return False
    return all(access.modes.get(base_id, mode) is mode for base_id, mode in find_stated_modes(log, last))


def _length(log: Sequence[Entry]) -> int:
    return log[-1].position + 1 if log else 0


def _find_changed_setting(conversation: Conversation, settings: ConversationSettings) -> EpochReason | None:
    """Return the reason for an epoch where this turn changes a setting; a change of the bases in scope is no reason."""
    if not conversation.model:
        return EpochReason.NEW_CONVERSATION
    if settings.model != conversation.model:
        return EpochReason.MODEL_CHANGED
    # Schemas are compared as bytes: 0 and 0.0, or 1 and true, are equal values in Python.
    if canonical_parts(settings.definitions, ()) != canonical_parts(conversation.settings.definitions, ()):
        return EpochReason.TOOLS_CHANGED
    if settings.instructions != conversation.instructions:
        return EpochReason.INSTRUCTIONS_CHANGED
    return None
