"""Convert values to rows and back; JSON columns hold text, so that the bytes that are read are those stored."""

from collections.abc import Collection, Mapping, Sequence

import orjson
from pydantic import TypeAdapter

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochState
from backend.conversations.domain.leases import TakenTurn
from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.placed_blocks import AgentRef, BlockMark
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
from backend.conversations.domain.served_tools import NOTHING_SERVED, ServedTools
from backend.conversations.domain.waiting_turns import Entered, IfRunning, WaitingTurn
from backend.foundation.sql.parameters import json_text, to_json
from backend.foundation.sql.statements import Row
from backend.knowledge.domain.labels import decode_labels, encode_labels
from backend.search.domain.filters import Filter
from shared.errors import CorruptRecord
from shared.models.values import JsonObject, Value

Parameters = dict[str, object]

_ENTRY = TypeAdapter(Entry).validator
"""The validator without its wrapper: a log has many rows, and each call of the wrapper would cost time."""


_DEFAULTS = set(ConversationSettings.model_fields) - {"served"}
_ENCODED = {*_DEFAULTS, "metadata", "sent", "preset_use", "served", "members"}


def conversation_parameters(conversation: Conversation) -> Parameters:
    """Return the row of a conversation."""
    return {
        **{name: value for name, value in vars(conversation).items() if name not in _ENCODED},
        "members": members_json(conversation.members),
        "metadata": to_json(conversation.metadata),
        "turn_defaults": to_json(conversation.model_dump(include=_DEFAULTS, exclude={"search": {"filters"}})),
        "search_filters": _filters_json(conversation),
        "sent_prompt": conversation.sent.model_dump_json() if conversation.sent is not None else None,
        "preset_use": _optional_json(conversation.preset_use),
        "served_tools": _encode_served(conversation),
    }


def members_json(members: Mapping[str, ConversationRole] | None) -> str | None:
    """Write the roles of those with whom a conversation is shared."""
    return to_json(dict(sorted(members.items()))) if members is not None else None


def to_members(stored: str | None) -> dict[str, ConversationRole] | None:
    """Read these roles; one that this release does not know becomes the one with the fewest rights.

    Raises:
        ValueError: it is not JSON.
    """
    if stored is None:
        return None
    roles: dict[str, str] = orjson.loads(stored)
    known = set(ConversationRole)
    return {name: ConversationRole(role) if role in known else ConversationRole.READER for name, role in roles.items()}


def _optional_json(use: PresetUse | None) -> str | None:
    return use.model_dump_json(exclude={"own": {"served"}}) if use is not None else None


def _to_preset_use(stored: str | None) -> PresetUse | None:
    return PresetUse.model_validate_json(stored) if stored is not None else None


class _FiltersUse(Value):
    """The filters of a turn's searches, apart from its other settings: the release before refuses to read them."""

    response_id: str | None
    filters: Filter


class _ServedUse(Value):
    """The tools of tool servers, apart from the other settings: the release before refuses to read them."""

    response_id: str | None
    served: ServedTools


def _encode_served(conversation: Conversation) -> str | None:
    if conversation.served == NOTHING_SERVED:
        return None
    return _ServedUse(response_id=conversation.latest_response_id, served=conversation.served).model_dump_json()


def _decode_served(stored: str | None, newest_response_id: object) -> ServedTools:
    """Read what is fixed, unless the release before has run a turn since, which knew nothing of it."""
    use = _ServedUse.model_validate_json(stored) if stored is not None else None
    return use.served if use is not None and use.response_id == newest_response_id else ServedTools()


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
        served = _decode_served(columns.pop("served_tools"), columns["latest_response_id"])
        if filters is not None:
            search = defaults.search.model_copy(update={"filters": filters})
            defaults = defaults.model_copy(update={"search": search})
        metadata = orjson.loads(columns.pop("metadata"))
        members = to_members(columns.pop("members"))
        sent_prompt = columns.pop("sent_prompt")
        sent = SentPrompt.model_validate_json(sent_prompt) if sent_prompt is not None else None
        use = _to_preset_use(columns.pop("preset_use"))
        if use is not None and use.response_id != columns["latest_response_id"]:
            use = None
        settings = dict(defaults.model_copy(update={"served": served}))
        known = {"metadata": metadata, "sent": sent, "preset_use": use, "members": members}
        return Conversation(**columns, **known, **settings)
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
            "kind": _STORED_AS.get(entry.kind, entry.kind).value,
            "label": encode_labels(entry.label),
            "role": entry.message.role if entry.message is not None else None,
            "content": _canonical(entry.message) if entry.message is not None else None,
            "reset": _reset_json(entry.reset, _FIRST_OF_RESET) if entry.reset is not None else None,
            "reset_additions": _additions_of(entry.reset) if entry.reset is not None else None,
            "context": _canonical(entry.context) if entry.context is not None else None,
            "placed": _encode_placed(entry),
            "created_at": entry.created_at,
        }
        for entry in entries
    ]


def _canonical(value: Value) -> str:
    return json_text(value.model_dump(), orjson.OPT_SORT_KEYS)


_STORED_AS: Mapping[EntryKind, EntryKind] = dict.fromkeys(
    (
        EntryKind.CUSTOM_INSTRUCTIONS,
        EntryKind.PROJECT_FILES,
        EntryKind.FILE,
        EntryKind.SUMMARY,
        EntryKind.REMINDER,
    ),
    EntryKind.NOTICE,
)
"""The kinds that the release before does not know, each under one of the same role that it does."""

_KNOWN_REMINDER = EntryKind.CUSTOM_INSTRUCTIONS
"""The kind under which a reminder is kept apart, as the release before knows none: it states no block."""

_FIRST_OF_RESET = frozenset({"reason", "begins_at", "says_from", "withheld", "access_mode", "template_version"})
"""The fields of a reset that the release before knows; it refuses to read others."""

_ADDED_TO_RESET = {name: one.default for name, one in EpochState.model_fields.items() if name not in _FIRST_OF_RESET}


class _Placed(Value):
    """What the release before does not know of an entry."""

    kind: EntryKind
    block: BlockMark | None = None
    summarised: tuple[AgentRef, ...] = ()

    @property
    def entry_kind(self) -> EntryKind:
        """The kind of the entry."""
        return EntryKind.REMINDER if self.kind is _KNOWN_REMINDER and self.block is None else self.kind


def _encode_placed(entry: Entry) -> str | None:
    if entry.kind not in _STORED_AS:
        return None
    kind = _KNOWN_REMINDER if entry.kind is EntryKind.REMINDER else entry.kind
    return _Placed(kind=kind, block=entry.block, summarised=entry.summarised).model_dump_json(exclude_defaults=True)


def _reset_json(reset: EpochState, fields: Collection[str]) -> str:
    return json_text(reset.model_dump(include=set(fields)), orjson.OPT_SORT_KEYS)


def _additions_of(reset: EpochState) -> str | None:
    added = {name for name, default in _ADDED_TO_RESET.items() if getattr(reset, name) != default}
    return _reset_json(reset, added) if added else None


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
    "custom_instructions": "user",
    "project_files": "user",
    "file": "user",
    "summary": "user",
    "reminder": "user",
    "void": None,
}
"""The role of the message in an entry of each kind; a void entry has no message."""


def _entry_fields(row: Row) -> Parameters:
    content: str | None = row["content"]
    message: JsonObject | None = orjson.loads(content) if content is not None else None
    placed = _Placed.model_validate_json(row["placed"]) if row["placed"] else None
    kind: str = placed.entry_kind.value if placed is not None else row["kind"]
    if (message["role"] if message is not None else None) != _ROLES[kind]:
        raise ValueError("kind and content do not go together")
    fields: Parameters = {
        "position": row["position"],
        "epoch": row["epoch"],
        "turn_id": row["turn_id"],
        "kind": kind,
        "message": message,
        "created_at": row["created_at"],
    }
    # Most rows have none of these, and the validation of each field takes time.
    if row["label"]:
        fields["label"] = decode_labels(row["label"])
    if row["reset"]:
        fields["reset"] = {**orjson.loads(row["reset"]), **orjson.loads(row["reset_additions"] or "{}")}
    if row["context"]:
        fields["context"] = orjson.loads(row["context"])
    if placed is not None:
        fields |= {"block": placed.block, "summarised": placed.summarised}
    return fields


def item_parameters(conversation_id: str, items: Sequence[Item]) -> list[Parameters]:
    """Return the rows of items."""
    return [{**vars(item), "conversation_id": conversation_id, "body": to_json(item.body)} for item in items]


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


def response_parameters(
    response: StoredResponse, plan: str | None = None, context_parts: str | None = None
) -> Parameters:
    """Return the row of a response whose turn begins."""
    return {
        **{name: value for name, value in vars(response).items() if name not in _OF_SEEN_POINT},
        "preset_use": _optional_json(response.preset_use),
        "plan": plan,
        "context_parts": context_parts,
        "settled_event": response.last_event,
        "status": response.status.value,
        "body": to_json(response.body),
        "input_items": to_json(response.input_items),
        "is_deleted": False,
        "label": encode_labels(response.label),
    }


_OF_TAKEN = ("plan", "context_parts", "settled_event")
_WRITTEN_ONLY = frozenset({"is_deleted", *_OF_TAKEN})


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


def encode_waiting(waiting: WaitingTurn) -> Parameters:
    """Return the row of a turn that waits, without its place."""
    response = waiting.response
    return {
        **response.model_dump(include=_OF_WAITING),
        "if_running": waiting.if_running.value,
        "expires_at": waiting.expires_at,
        "body": to_json(response.body),
        "input_items": to_json(response.input_items),
        "label": encode_labels(response.label),
        "asked": waiting.asked,
    }


_OF_WAITING = {"id", "conversation_id", "tenant", "user_id", "created_at", "background"}


def to_entered(row: Row) -> Entered:
    """Read what a message that has entered a turn shows to clients."""
    items = tuple(orjson.loads(row["input_items"]))
    return Entered(response_id=row["entered_id"], output_count=row["entered_at"], items=items)


def to_remains(row: Row) -> StoredResponse:
    """Read of a turn that waits what is no JSON; its body and its input are left empty."""
    return StoredResponse(
        **{name: row[name] for name in _OF_WAITING},
        status=ResponseStatus.QUEUED,
        body={},
        input_items=(),
        log_end=None,
        items_end=None,
        last_event=-1,
        replica="",
        label=decode_labels(row["label"]),
    )


def to_waiting_turn(row: Row) -> WaitingTurn:
    """Read the row of a turn that waits."""
    try:
        given = {"body": orjson.loads(row["body"]), "input_items": tuple(orjson.loads(row["input_items"]))}
        response = to_remains(row).model_copy(update=given)
        how = IfRunning(row["if_running"])
        return WaitingTurn(response=response, if_running=how, asked=row["asked"], expires_at=row["expires_at"])
    except ValueError as error:
        raise CorruptRecord(f"Response {row['id']} cannot be read.") from error


def to_taken_turn(row: Row) -> TakenTurn:
    """Read the row of a response whose turn was taken over."""
    return TakenTurn(response=to_response(row), **{name: row[name] for name in _OF_TAKEN})


def finish_parameters(response: StoredResponse) -> Parameters:
    """Return the columns of a response that are written at the end of its turn."""
    return {
        "status": response.status.value,
        "body": to_json(response.body),
        "partial_output": None,
        "plan": None,
        "context_parts": None,
        "log_end": response.log_end,
        "items_end": response.items_end,
        "last_event": response.last_event,
    }
