"""The reminder of a model call: the agent's words, that no tool may be called again, how to cite."""

from collections.abc import Iterable, Sequence

from chat_shell.knowledge.domain.documents import numbers_in
from chat_shell.turns.domain.turn import CallModel, TurnState
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, Message
from shared.prompts.message_order import CITATIONS, LAST_CALL, SUPERSEDED, read_reminder, reminder_text

STANDS_WITHIN_MESSAGES = 12
"""How far from the end a reminder that stays may stand before it is said again. Near the end a model heeds it most, and
each repetition is paid once in full: at twelve messages, some three turns with a search each, that is a few percent of
what the turns add themselves."""


def reminder_of_call(request: ExecutionRequest, state: TurnState, step: CallModel) -> str:
    """Return the reminder that a model call ends with; "" where there is nothing to say, as in every summary.

    It depends on what the turn has behind it, also before another process took it over. A turn that has called no tool
    is not told that it may call none: nothing has changed for it, nor for one whose caller forbade tools. It is told
    how to cite once a tool has brought numbered documents: no other message says so.
    """
    if request.purpose is Purpose.SUMMARY:
        return ""
    is_last_call = step.tool_choice == "none" and state.tool_choice != "none"
    last_call = LAST_CALL if is_last_call and _has_called(state.added) else ""
    citations = CITATIONS if numbers_in(state.added).documents else ""
    parts = [part for part in (request.reminder, last_call, citations) if part and not part.isspace()]
    return _unsaid(parts, step.messages, len(state.prompt)) if request.keeps_reminders else reminder_text(parts)


def _unsaid(parts: Sequence[str], messages: Sequence[Message], turn_at: int) -> str:
    """Return the reminder that is due behind these messages, of which those from `turn_at` on are the turn's own.

    It is "" while the newest says all of it near enough. What the newest says else is taken back: words that the agent
    no longer has, and that no tool may be called in what was another turn.
    """
    behind = ((at, said) for at in reversed(range(len(messages))) if (said := read_reminder(messages[at])) is not None)
    at, said = next(behind, (0, ""))
    rest = said
    for part in (*parts, CITATIONS, SUPERSEDED):
        rest = rest.replace(part, "") if part != LAST_CALL or at >= turn_at else rest
    if rest and not rest.isspace():
        return reminder_text((SUPERSEDED, *parts))
    is_near = len(messages) - at <= STANDS_WITHIN_MESSAGES
    return "" if is_near and all(part in said for part in parts) else reminder_text(parts)


def _has_called(messages: Iterable[Message]) -> bool:
    return any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
