"""Whether a turn goes on in its epoch or starts one, and with what."""

from collections.abc import Sequence

from backend.domain.compaction import Load, compacted
from backend.domain.conversation_log import Entry, EpochReason, Reset, newest_reset, sent_entries
from backend.domain.responses import Conversation
from backend.domain.turn_settings import TurnSettings, changed_setting
from shared.models.events import ModelCard
from shared.models.execution import AccessMode
from shared.models.values import Value
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION

CONTEXT_STANDS = frozenset({EpochReason.MODEL_CHANGED, EpochReason.TOOLS_CHANGED, EpochReason.INSTRUCTIONS_CHANGED})
"""Reasons that leave true what context messages have said. A conversation that returns to an earlier model then finds
in that provider's cache what it left there."""


class TurnAccess(Value):
    """What the caller may read today: the strictest mode of the bases in scope, and which turns he may not see."""

    mode: AccessMode
    withheld: tuple[str, ...]


class Epoch(Value):
    """The epoch of a turn. `reset` is what it begins with; `starts` says that it begins with this turn."""

    number: int
    reset: Reset
    starts: bool


def plan_epoch(conversation: Conversation, log: Sequence[Entry], settings: TurnSettings, access: TurnAccess) -> Epoch:
    """Go on, or start an epoch for the first reason that holds."""
    last = newest_reset(log)
    reason = _reason(conversation, last, settings, access)
    if reason is None:
        return Epoch(number=conversation.epoch, reset=last, starts=False)
    stands = reason in CONTEXT_STANDS and _is_current(last) and _access_of(last) == (access.mode, access.withheld)
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
    """Leave out the oldest turns where the conversation has outgrown the model's window.

    Raises:
        ContextTooLong: what may not be left out does not fit.
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


def _reason(conversation: Conversation, last: Reset, settings: TurnSettings, access: TurnAccess) -> EpochReason | None:
    changed = changed_setting(conversation, settings)
    if changed is not None:
        return changed
    if not _is_current(last):
        return EpochReason.TEMPLATE_VERSION
    if _access_of(last) != (access.mode, access.withheld):
        return EpochReason.ACCESS_CHANGED
    return None


def _is_current(last: Reset) -> bool:
    return last.template_version in KNOWLEDGE_SECTIONS


def _access_of(last: Reset) -> tuple[AccessMode, tuple[str, ...]]:
    return last.access_mode, last.withheld


def _length(log: Sequence[Entry]) -> int:
    return log[-1].position + 1 if log else 0
