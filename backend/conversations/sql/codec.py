"""Convert values to rows and back; JSON columns hold text, so that the bytes that are read are those stored."""

from collections.abc import Mapping, Sequence

import orjson
from pydantic import TypeAdapter

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.leases import TakenTurn
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import (
    Conversation,
    ConversationSettings,
    Item,
    ItemBody,
    PresetUse,
    ResponseStatus,
    StoredResponse,
)
from backend.foundation.sql.parameters import json_text, to_json
from backend.foundation.sql.statements import Row
from backend.knowledge.domain.filters import Filter
from backend.knowledge.domain.labels import decode_labels, encode_labels
from shared.errors import CorruptRecord
from shared.models.values import JsonObject, Value

Parameters = dict[str, object]

_ENTRY = TypeAdapter(Entry).validator
"""The validator without its wrapper: a log has many rows, and each call of the wrapper would cost time."""


def conversation_parameters(conversation: Conversation) -> Parameters:
    """Return the row of a conversation."""
    settings = set(ConversationSettings.model_fields)
    return {
        **conversation.model_dump(exclude={*settings, "metadata", "sent", "preset_use"}),
        "metadata": to_json(conversation.metadata),
        "turn_defaults": to_json(conversation.model_dump(include=settings, exclude={"search": {"filters"}})),
        "search_filters": _filters_json(conversation),
        "sent_prompt": conversation.sent.model_dump_json() if conversation.sent is not None else None,
        "preset_use": _optional_json(conversation.preset_use),
    }


def _optional_json(use: PresetUse | None) -> str | None:
    return use.model_dump_json() if use is not None else None


def _to_preset_use(stored: str | None) -> PresetUse | None:
    return PresetUse.model_validate_json(stored) if stored is not None else None


class _FiltersUse(Value):
    """The filters of a turn's searches, apart from its other settings: the release before refuses to read them."""

    response_id: str | None
    filters: Filter


def _filters_json(conversation: Conversation) -> str | None:
    filters = conversation.search.filters
    if filters is None:
        return None
    return _FiltersUse(response_id=conversation.latest_response_id, filters=filters).model_dump_json()


def _filters_of(stored: str | None, newest_response_id: object) -> Filter | None:
    use = _FiltersUse.model_validate_json(stored) if stored is not None else None
    return use.filters if use is not None and use.response_id == newest_response_id else None


def to_conversation(row: Row) -> Conversation:
    """Read the row of a conversation."""
    columns = dict(row)
    try:
        defaults = ConversationSettings.model_validate_json(columns.pop("turn_defaults"))
        filters = _filters_of(columns.pop("search_filters"), columns["latest_response_id"])
        if filters is not None:
            search = defaults.search.model_copy(update={"filters": filters})
            defaults = defaults.model_copy(update={"search": search})
        metadata = orjson.loads(columns.pop("metadata"))
        sent_prompt = columns.pop("sent_prompt")
        sent = SentPrompt.model_validate_json(sent_prompt) if sent_prompt is not None else None
        use = _to_preset_use(columns.pop("preset_use"))
        if use is not None and use.response_id != columns["latest_response_id"]:
            use = None
        return Conversation(**columns, metadata=metadata, sent=sent, preset_use=use, **dict(defaults))
    except ValueError as error:
        raise CorruptRecord(f"Conversation {row['id']} cannot be read.") from error


def entry_parameters(conversation_id: str, entries: Sequence[Entry]) -> list[Parameters]:
    """Return the rows of log entries; JSON columns have sorted keys and no spaces."""
    return [
        {
            "conversation_id": conversation_id,
            "position": entry.position,
            "epoch": entry.epoch,
            "turn_id": entry.turn_id,
            "kind": entry.kind.value,
            "label": encode_labels(entry.label),
            "role": entry.message.role if entry.message is not None else None,
            "content": _canonical(entry.message) if entry.message is not None else None,
            "reset": _canonical(entry.reset) if entry.reset is not None else None,
            "context": _canonical(entry.context) if entry.context is not None else None,
            "created_at": entry.created_at,
        }
        for entry in entries
    ]


def _canonical(value: Value) -> str:
    return json_text(value.model_dump(), orjson.OPT_SORT_KEYS)


def to_entries(conversation_id: str, rows: Sequence[Row]) -> tuple[Entry, ...]:
    """Read the rows of log entries."""
    return tuple([_to_entry(conversation_id, row) for row in rows])


def _to_entry(conversation_id: str, row: Row) -> Entry:
    try:
        return _ENTRY.validate_python(_entry_fields(row))
    except (LookupError, TypeError, ValueError) as error:
        place = f"position {row['position']} of conversation {conversation_id}"
        raise CorruptRecord(f"The log entry at {place} cannot be read.") from error


_ROLES: Mapping[str, str | None] = {
    "user": "user",
    "dynamic_context": "user",
    "notice": "user",
    "assistant": "assistant",
    "tool_result": "tool",
    "system": "system",
    "void": None,
}
"""The role of the message in an entry of each kind; a void entry has no message."""


def _entry_fields(row: Row) -> Parameters:
    content: str | None = row["content"]
    message: JsonObject | None = orjson.loads(content) if content is not None else None
    if (message["role"] if message is not None else None) != _ROLES[row["kind"]]:
        raise ValueError("kind and content do not go together")
    fields: Parameters = {
        "position": row["position"],
        "epoch": row["epoch"],
        "turn_id": row["turn_id"],
        "kind": row["kind"],
        "message": message,
        "created_at": row["created_at"],
    }
    # Most rows have none of these, and the validation of each field takes time.
    if row["label"]:
        fields["label"] = decode_labels(row["label"])
    if row["reset"]:
        fields["reset"] = orjson.loads(row["reset"])
    if row["context"]:
        fields["context"] = orjson.loads(row["context"])
    return fields


def item_parameters(conversation_id: str, items: Sequence[Item]) -> list[Parameters]:
    """Return the rows of items."""
    return [{**dict(item), "conversation_id": conversation_id, "body": to_json(item.body)} for item in items]


def to_item(conversation_id: str, row: Row) -> Item:
    """Read the row of an item."""
    try:
        return Item(
            id=row["id"], sequence=row["sequence"], response_id=row["response_id"], body=orjson.loads(row["body"])
        )
    except ValueError as error:
        place = f"position {row['sequence']} of conversation {conversation_id}"
        raise CorruptRecord(f"The item at {place} cannot be read.") from error


_OF_SEEN_POINT = frozenset({"seen", "ran_with"})
"""What of a response is stored in a row of its own, at the end of its turn."""


def response_parameters(response: StoredResponse, plan: str | None) -> Parameters:
    """Return the row of a response whose turn begins."""
    return {
        **{name: value for name, value in dict(response).items() if name not in _OF_SEEN_POINT},
        "preset_use": _optional_json(response.preset_use),
        "plan": plan,
        "settled_event": response.last_event,
        "status": response.status.value,
        "body": to_json(response.body),
        "input_items": to_json(response.input_items),
        "is_deleted": False,
        "label": encode_labels(response.label),
    }


_WRITTEN_ONLY = frozenset({"is_deleted", "plan", "settled_event"})


def to_response(row: Row) -> StoredResponse:
    """Read the row of a response; the output of a running turn so far becomes part of its body."""
    columns = {name: value for name, value in row.items() if name not in _WRITTEN_ONLY}
    partial_output = columns.pop("partial_output")
    try:
        body: JsonObject = orjson.loads(columns.pop("body"))
        if partial_output is not None:
            body["output"] = orjson.loads(partial_output)
        input_items: list[ItemBody] = orjson.loads(columns.pop("input_items"))
        status = ResponseStatus(columns.pop("status"))
        columns["label"] = decode_labels(columns["label"])
        columns["preset_use"] = _to_preset_use(columns["preset_use"])
        return StoredResponse(**columns, status=status, body=body, input_items=tuple(input_items))
    except ValueError as error:
        raise CorruptRecord(f"Response {row['id']} cannot be read.") from error


def to_taken_turn(row: Row) -> TakenTurn:
    """Read the row of a response whose turn was taken over."""
    return TakenTurn(response=to_response(row), plan=row["plan"], settled_event=row["settled_event"])


def finish_parameters(response: StoredResponse) -> Parameters:
    """Return the columns of a response that are written at the end of its turn."""
    return {
        "status": response.status.value,
        "body": to_json(response.body),
        "partial_output": None,
        "plan": None,
        "log_end": response.log_end,
        "items_end": response.items_end,
        "last_event": response.last_event,
    }
