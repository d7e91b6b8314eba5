"""Closing a turn whose process died: what was said by its last checkpoint stays."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.responses import FinishedTurn, Item, ItemBody, StoredResponse
from backend.conversations.domain.turn_entries import numbered_items
from backend.turns.domain.response_events import LoggedEvent, encode_event
from backend.turns.domain.response_object import ResponseBody, ended_body, failed, shown_body
from backend.turns.domain.response_projection import error_event
from shared.errors import InternalError
from shared.models.error_reports import report_of
from shared.models.events import Usage
from shared.models.messages import AssistantMessage
from shared.models.values import objects_in

UNSEEN_GAP = 1_000_000
"""From the last checkpoint's number to the end of a turn whose events are lost.

Clients hold numbers behind the checkpoint: half a second of them, or more where the database was away. An end
numbered among those is never heard by who asks for what comes after. No turn has a million events: each holds a
piece of what a model wrote.
"""

LOST = report_of(InternalError("The server stopped while this response was running."))


class KeptLog(NamedTuple):
    """The log that a lost turn has left: None where it cannot be read, and then nothing is added to it."""

    entries: Sequence[Entry] | None
    length: int


def closed_turn(
    response: StoredResponse, log: KeptLog, newest_item: Item | None, now: datetime, newest_number: int
) -> tuple[FinishedTurn, tuple[LoggedEvent, ...]]:
    """Make the failed end of a lost turn, and its last events behind number `newest_number`."""
    output = objects_in(response.body["output"])
    body = ended_body(response.body, output, failed(LOST, Usage()), int(now.timestamp()))
    entries = _last_entries(response, log.entries, output, now) if log.entries is not None else ()
    sequence = newest_item.sequence + 1 if newest_item is not None else 0
    items = numbered_items(output, sequence, response.id)
    events = _last_events(body, newest_number + 1)
    changes = {
        "status": failed(LOST, Usage()).status,
        "body": body,
        "log_end": log.length + len(entries),
        "items_end": sequence + len(items),
        "last_event": events[-1].sequence_number,
    }
    return FinishedTurn(response=response.model_copy(update=changes), entries=entries, items=items), events


def _last_entries(
    response: StoredResponse, log: Sequence[Entry], output: Sequence[ItemBody], now: datetime
) -> tuple[Entry, ...]:
    """Log the text that no entry holds yet; a turn that said nothing is void.

    Entries of the turn's input, which may hold assistant messages too, were made at its very beginning.
    """
    own = [entry for entry in log if entry.turn_id == response.id and entry.created_at > response.created_at]
    said = [entry.message for entry in own if isinstance(entry.message, AssistantMessage)]
    logged_count = sum(1 for message in said if message.text)
    unlogged = "".join([_text(item) for item in output if item["type"] == "message"][logged_count:])
    if unlogged:
        return (_entry(response, log, EntryKind.ASSISTANT, AssistantMessage(text=unlogged), now),)
    return () if said else (_entry(response, log, EntryKind.VOID, None, now),)


def _entry(
    response: StoredResponse, log: Sequence[Entry], kind: EntryKind, message: AssistantMessage | None, now: datetime
) -> Entry:
    return Entry(
        position=len(log),
        epoch=log[-1].epoch if log else 0,
        turn_id=response.id,
        kind=kind,
        message=message,
        created_at=now,
    )


def _text(item: ItemBody) -> str:
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in objects_in(item["content"]))


def _last_events(body: ResponseBody, number: int) -> tuple[LoggedEvent, ...]:
    last = {
        "type": "response.failed",
        "sequence_number": number + 1,
        "response": shown_body(body, with_results=False),
    }
    return encode_event({"sequence_number": number, **error_event(LOST)}), encode_event(last)
