"""The end of a turn that never began."""

from datetime import datetime

from backend.conversations.domain.responses import StoredResponse
from backend.turns.domain.response_object import Ending, ended_body

LAST_EVENT = 1
"""A replay has `response.created`, number 0, and the terminal event."""


def unbegun(response: StoredResponse, ending: Ending, now: datetime) -> StoredResponse:
    """Return the response of a waiting turn as it is stored when it ends: without output, and without a log."""
    changes = {
        "status": ending.status,
        "body": ended_body(response.body, (), ending, int(now.timestamp())),
        "last_event": LAST_EVENT,
    }
    return response.model_copy(update=changes)
