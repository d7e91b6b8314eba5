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
    reset = Reset(
        reason=reason,
        begins_at=last.begins_at,
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
    begins_at = compacted(sent_entries(log, epoch.number, epoch.reset), load, card, epoch.reset)
    if begins_at is None:
        return epoch
    if epoch.starts:
        return epoch.model_copy(update={"reset": epoch.reset.model_copy(update={"begins_at": begins_at})})
    changes = {"reason": EpochReason.COMPACTION, "begins_at": begins_at}
    return Epoch(number=epoch.number + 1, reset=epoch.reset.model_copy(update=changes), starts=True)


def _reason(conversation: Conversation, last: Reset, settings: TurnSettings, access: TurnAccess) -> EpochReason | None:
    changed = changed_setting(conversation, settings)
    if changed is not None:
        return changed
    if last.template_version not in KNOWLEDGE_SECTIONS:
        return EpochReason.TEMPLATE_VERSION
    if (access.mode, access.withheld) != (last.access_mode, last.withheld):
        return EpochReason.ACCESS_CHANGED
    return None
