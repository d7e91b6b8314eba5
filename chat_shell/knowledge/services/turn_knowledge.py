"""The knowledge bases and the credentials of the turn that calls a knowledge tool."""

from typing import Annotated

from pydantic import StringConstraints

from chat_shell.knowledge.ports import TurnCredentials
from chat_shell.tools.domain.tool_calls import ArgumentsRejected
from chat_shell.tools.ports.tools import ToolContext
from shared.prompts import knowledge_base as texts

BaseIds = tuple[str, ...] | None
NonBlankText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

WHOLE_BASE_WINDOW_SHARE = 10
"""A base that fits a tenth of the model's context window is returned whole; a page is at most as long."""


def bases_in_scope(wanted: BaseIds, context: ToolContext) -> tuple[str, ...]:
    """Return the bound bases, or those of them that the model named, in the turn's order.

    Raises:
        ArgumentsRejected: the model named a base that is not bound to the turn.
    """
    bound = tuple(base.id for base in context.request.knowledge.bases)
    if not wanted or not bound:
        return bound
    if not set(wanted) <= set(bound):
        raise ArgumentsRejected(texts.BASE_NOT_IN_SCOPE)
    return tuple(base_id for base_id in bound if base_id in wanted)


def credentials_of(context: ToolContext) -> TurnCredentials:
    """Return the credentials with which the backend is called for this turn."""
    return TurnCredentials(ticket=context.request.knowledge.ticket, request_id=context.request.request_id)
