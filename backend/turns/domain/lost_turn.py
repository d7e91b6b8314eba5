"""Ending a turn whose process died and which cannot run again: what it has said is kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.responses import FinishedTurn, Item, ItemBody, StoredResponse, number_items
from backend.conversations.domain.waiting_turns import Entered
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import build_failure, build_interruption
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.prompt.domain.turn_entries import with_entered
from shared.errors import InternalError
from shared.models.error_reports import report_of
from shared.models.events import Usage
from shared.models.messages import AssistantMessage
from shared.models.values import objects_in

UNSEEN_GAP = 1_000_000
"""How far the last event's number is put behind the last checkpoint's when the events of the turn are lost.

Clients may have received events after the checkpoint: those of half a second, or more while the database was away.
A client that asks for events after its newest number would miss an end with a smaller number. No turn has a million
events, because each holds a piece of a model's output.
"""

LOST_REPORT = report_of(InternalError("The server stopped while this response was running."))


class RemainingLog(NamedTuple):
    """The log that a lost turn has left; `entries` is None where it cannot be read, and then nothing is added to it."""

    entries: Sequence[Entry] | None
    length: int


class ShownSoFar(NamedTuple):
    """What clients have got, the usage of the model calls that had ended, and the messages that entered the turn."""

    projection: ResponseProjection
    usage: Usage
    entered: Sequence[Entered]


def close_turn(
    response: StoredResponse,
    log: RemainingLog,
    newest_item: Item | None,
    told: ShownSoFar,
    now: datetime,
) -> tuple[FinishedTurn, Sequence[LoggedEvent]]:
    """Build the end of a lost turn and its last events: incomplete with what it has said, or failed without a word."""
    projection, usage, entered = told
    output = projection.output()
    ending = build_interruption(usage) if output else build_failure(LOST_REPORT, usage)
    body, events = projection.finish(ending, int(now.timestamp()))
    entries = _last_entries(response, log.entries, output, now) if log.entries is not None else ()
    sequence = newest_item.sequence + 1 if newest_item is not None else 0
    items = number_items(with_entered(objects_in(body["output"]), entered), sequence, response.id)
    changes = {
        "status": ending.status,
        "body": body,
        "log_end": log.length + len(entries),
        "items_end": sequence + len(items),
        "last_event": projection.last_number,
    }
    return FinishedTurn(response=response.model_copy(update=changes), entries=entries, items=items), events


def _last_entries(
    response: StoredResponse, log: Sequence[Entry], output: Sequence[ItemBody], now: datetime
) -> tuple[Entry, ...]:
    """Build the log entry of the text that no entry holds yet; a turn without any output becomes void.

    Entries of the turn's input, which may hold assistant messages too, have the creation time of the response.
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
