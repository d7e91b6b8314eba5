"""The reminder of a model call: the agent's words, that no tool may be called again, how to cite."""

from collections.abc import Iterable

from chat_shell.knowledge.domain.documents import numbers_in
from chat_shell.turns.domain.turn import CallModel, TurnState
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, Message
from shared.prompts.reminders import CITATIONS, LAST_CALL, reminder_text


def reminder_of_call(request: ExecutionRequest, state: TurnState, step: CallModel) -> str:
    """Return the reminder of a model call; "" where there is nothing to say, as in every summary.

    It depends on what the turn has behind it, also before another process took it over. A turn that has called no tool
    is not told that it may call none: nothing has changed for it, nor for one whose caller forbade tools. It is told
    how to cite once a tool has brought numbered documents: no other message says so.
    """
    if request.purpose is Purpose.SUMMARY:
        return ""
    is_last_call = step.tool_choice == "none" and state.tool_choice != "none"
    last_call = LAST_CALL if is_last_call and _has_called(state.added) else ""
    citations = CITATIONS if numbers_in(state.added).documents else ""
    return reminder_text((request.reminder, last_call, citations))


def _has_called(messages: Iterable[Message]) -> bool:
    return any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
