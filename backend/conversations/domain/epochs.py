"""Decide whether a turn continues the current epoch of its conversation or starts a new one."""

from collections.abc import Sequence

from backend.conversations.domain.compaction import Load, compacted
from backend.conversations.domain.conversation_log import (
    Entry,
    EpochReason,
    Reset,
    newest_reset,
    sent_entries,
    stated_modes,
)
from backend.conversations.domain.responses import Conversation, ConversationSettings
from shared.models.canonical import canonical_parts
from shared.models.events import ModelCard
from shared.models.execution import AccessMode
from shared.models.values import Value
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION

CONTEXT_STANDS = frozenset({EpochReason.MODEL_CHANGED, EpochReason.TOOLS_CHANGED, EpochReason.INSTRUCTIONS_CHANGED})
"""Reasons for an epoch that keeps the context messages sent so far, because they are still true. A conversation that
returns to an earlier model can then use what that provider still has in its cache."""


class CallerAccess(Value):
    """What the caller may read now.

    `mode` is the strictest mode of the bases in scope, `modes` the mode of each by the base's id. `withheld` holds the
    ids of the turns whose text the caller may no longer read.
    """

    mode: AccessMode
    withheld: tuple[str, ...]
    modes: dict[str, AccessMode]


class Epoch(Value):
    """The epoch of a turn; `starts` is true where it starts with this turn."""

    number: int
    reset: Reset
    starts: bool


def plan_epoch(
    conversation: Conversation, log: Sequence[Entry], settings: ConversationSettings, access: CallerAccess
) -> Epoch:
    """Continue the current epoch, or start a new one for the first reason that applies."""
    last = newest_reset(log)
    is_same_access = _is_same_access(log, last, access)
    reason = _reason(conversation, last, settings, is_same_access=is_same_access)
    if reason is None:
        return Epoch(number=conversation.epoch, reset=last, starts=False)
    stands = reason in CONTEXT_STANDS and _is_current(last) and is_same_access
    reset = Reset(
        reason=reason,
        begins_at=last.begins_at,
        says_from=last.says_from if stands else _length(log),
        withheld=access.withheld,
        access_mode=access.mode,
        template_version=TEMPLATE_VERSION,
    )
    step = 0 if reason is EpochReason.NEW_CONVERSATION else 1
    return Epoch(number=conversation.epoch + step, reset=reset, starts=True)


def compact(epoch: Epoch, log: Sequence[Entry], load: Load, card: ModelCard) -> Epoch:
    """Leave out the oldest turns where the conversation no longer fits the model's context window.

    Raises:
        ContextTooLong: the part that must be sent does not fit the window.
    """
    cut = compacted(sent_entries(log, epoch.reset), load, card, epoch.reset)
    if cut is None:
        return epoch
    says_from = _length(log) if cut.restates else epoch.reset.says_from
    changed = {"begins_at": cut.begins_at, "says_from": says_from}
    if epoch.starts:
        return epoch.model_copy(update={"reset": epoch.reset.model_copy(update=changed)})
    changes = {"reason": EpochReason.COMPACTION, **changed}
    return Epoch(number=epoch.number + 1, reset=epoch.reset.model_copy(update=changes), starts=True)


def _reason(
    conversation: Conversation, last: Reset, settings: ConversationSettings, *, is_same_access: bool
) -> EpochReason | None:
    changed = _changed_setting(conversation, settings)
    if changed is not None:
        return changed
    if not _is_current(last):
        return EpochReason.TEMPLATE_VERSION
    if not is_same_access:
        return EpochReason.ACCESS_CHANGED
    return None


def _is_current(last: Reset) -> bool:
    return last.template_version in KNOWLEDGE_SECTIONS


def _is_same_access(log: Sequence[Entry], last: Reset, access: CallerAccess) -> bool:
    """Return whether the epoch may continue with this access: an epoch describes each base in one mode only."""
    if (last.access_mode, last.withheld) != (access.mode, access.withheld):
        return False
    return all(access.modes.get(base_id, mode) is mode for base_id, mode in stated_modes(log, last))


def _length(log: Sequence[Entry]) -> int:
    return log[-1].position + 1 if log else 0


def _changed_setting(conversation: Conversation, settings: ConversationSettings) -> EpochReason | None:
    """Return the reason for an epoch where this turn changes a setting; a change of the bases in scope is no reason."""
    if not conversation.model:
        return EpochReason.NEW_CONVERSATION
    if settings.model != conversation.model:
        return EpochReason.MODEL_CHANGED
    # Schemas are compared as bytes: 0 and 0.0, or 1 and true, are equal values in Python.
    if canonical_parts(settings.functions, ()) != canonical_parts(conversation.functions, ()):
        return EpochReason.TOOLS_CHANGED
    if settings.instructions != conversation.instructions:
        return EpochReason.INSTRUCTIONS_CHANGED
    return None
