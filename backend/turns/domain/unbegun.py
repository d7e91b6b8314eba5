"""The end of a turn that never began."""

from datetime import datetime

from backend.conversations.domain.responses import ConversationSettings, StoredResponse
from backend.openai_api.domain.response_object import Ending, build_ended_body, new_body
from backend.openai_api.domain.turn_request import TurnRequest

LAST_EVENT = 1
"""A replay has `response.created`, number 0, and the terminal event."""


def unbegun(response: StoredResponse, ending: Ending, now: datetime) -> StoredResponse:
    """Return the response of a waiting turn as it is stored when it ends: without output, and without a log."""
    changes = {
        "status": ending.status,
        "body": build_ended_body(response.body, (), ending, int(now.timestamp())),
        "last_event": LAST_EVENT,
    }
    return response.model_copy(update=changes)


def with_blank_body(response: StoredResponse) -> StoredResponse:
    """Return a response, of which nothing but its ids can be read, with the body of a request that says nothing."""
    settings = ConversationSettings(model="", instructions="", functions=(), knowledge_base_ids=())
    body = new_body(TurnRequest(input=""), settings, response.id, response.conversation_id, response.created_at)
    return response.model_copy(update={"body": body})
