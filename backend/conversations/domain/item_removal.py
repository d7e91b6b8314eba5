"""Taking the last item out of a conversation, by entries that are appended to its log.

The log only grows: the turn of what is taken out becomes void, and what remains of it is appended once more. A request
then holds the same bytes as before, up to what was taken out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    EpochReason,
    EpochState,
    find_pending_calls,
    messages_of,
    newest_epoch_state,
    part_of,
    select_sent,
    whole_turn_of,
)
from backend.conversations.domain.placed_blocks import ANCHORED
from backend.conversations.domain.responses import Item, Removal
from backend.knowledge.domain.labels import Label, Labels, join_labels
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from shared.models.served_tools import model_name
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH

_GLUED_ABOVE = frozenset(
    {
        EntryKind.CUSTOM_INSTRUCTIONS,
        EntryKind.PROJECT_FILES,
        EntryKind.FILE,
        EntryKind.DYNAMIC_CONTEXT,
        EntryKind.NOTICE,
    }
)
"""What stands above a message of the user and goes with it."""

IsCall = Callable[[ToolCall], bool]


def take_out(conversation_id: str, log: Sequence[Entry], item: Item, now: datetime) -> Removal:
    """Return what takes the last item out of a conversation; the epoch that it begins is the next one.

    What stands above a message of the user, such as a context message or a notice, goes too where the remaining log
    would end with it: the next turn states it again.
    """
    last = _find_telling(newest_epoch_state(log), log, item)
    sent = _as_logged(log, last)
    kept = _without_item(sent, item)
    start, void = _find_changed(sent, kept)
    first, epoch = (log[-1].position + 1, log[-1].epoch + 1) if log else (0, 1)
    again = _append_again(kept[start:], first, _labels(log))
    behind = first + len(again)
    ids = void or [part_of(item.response_id or conversation_id, behind)]
    voids = [
        Entry(position=place, epoch=epoch, turn_id=turn_id, kind=EntryKind.VOID, message=None, created_at=now)
        for place, turn_id in enumerate(ids, behind)
    ]
    withheld = [new.turn_id for old, new in zip(kept[start:], again, strict=True) if old.turn_id in last.withheld]
    entries = [entry.model_copy(update={"epoch": epoch, "created_at": now}) for entry in (*again, *voids)]
    entries[0] = entries[0].model_copy(update={"reset": _mark_edited(last, withheld)})
    return Removal(item=item, epoch=epoch, entries=tuple(entries))


def is_edited(entries: Sequence[Entry]) -> bool:
    """Return whether an item was taken out with one of these entries."""
    resets = [entry.reset for entry in entries if entry.reset is not None]
    return any(reset.reason is EpochReason.HISTORY_EDITED for reset in resets)


def _find_telling(last: EpochState, log: Sequence[Entry], item: Item) -> EpochState:
    """Return the reset under which requests hold an item.

    A summary tells of what a compaction has left out, so an item of that part takes the compaction back: the next turn
    makes another one, where it needs one.
    """
    whole = last.model_copy(update={"begins_at": 0, "summary_at": None})
    is_left_out = last.begins_at > 0 and any(
        _holds(entry, item) for entry in _as_logged(log, whole) if entry.position < last.begins_at
    )
    return whole if is_left_out else last


def _as_logged(log: Sequence[Entry], reset: EpochState) -> tuple[Entry, ...]:
    """Return what requests hold: what is withheld or elided now may be sent again later, so it is as it was logged."""
    return select_sent(log, reset.model_copy(update={"withheld": (), "placement": ANCHORED}))


def _labels(log: Sequence[Entry]) -> Mapping[str, Labels]:
    labels: dict[str, list[Label]] = {}
    for entry in log:
        if entry.label:
            labels.setdefault(entry.turn_id, []).extend(entry.label)
    return {turn_id: join_labels(found) for turn_id, found in labels.items()}


def _append_again(entries: Sequence[Entry], first: int, labels: Mapping[str, Labels]) -> list[Entry]:
    """Return entries as they are appended again: each is a turn of its own, so that each can become void alone."""
    places = enumerate(entries, first)
    changes = [
        {
            "position": place,
            "turn_id": part_of(entry.turn_id, place),
            "label": labels.get(entry.turn_id, ()),
            "reset": None,
        }
        for place, entry in places
    ]
    return [entry.model_copy(update=change) for entry, change in zip(entries, changes, strict=True)]


def _mark_edited(last: EpochState, withheld: Collection[str]) -> EpochState:
    changes = {"reason": EpochReason.HISTORY_EDITED, "withheld": tuple(sorted({*last.withheld, *withheld}))}
    return last.model_copy(update=changes)


def _find_changed(sent: Sequence[Entry], kept: Sequence[Entry]) -> tuple[int, list[str]]:
    """Return from where on entries are appended again, and the ids of the turns that become void."""
    pairs = enumerate(zip(sent, kept, strict=False))
    start = next((place for place, (old, new) in pairs if old is not new), min(len(sent), len(kept)))
    while True:
        void = dict.fromkeys([entry.turn_id for entry in sent[start:]])
        first = next((place for place, entry in enumerate(sent) if entry.turn_id in void), start)
        if first >= start:
            return start, list(void)
        start = first


def _without_item(sent: Sequence[Entry], item: Item) -> list[Entry]:
    """Return the entries that are sent on without the item: nothing behind it is left but results of calls."""
    place = next((place for place in reversed(range(len(sent))) if _holds(sent[place], item)), None)
    if place is None:
        return list(sent)
    kept = [*sent[:place], *_rest_of(sent[place], item)]
    waiting = find_pending_calls(messages_of(kept))
    kept += [
        entry
        for entry in sent[place + 1 :]
        if isinstance(entry.message, ToolMessage) and entry.message.call_id in waiting
    ]
    while kept and kept[-1].kind in _GLUED_ABOVE:
        kept.pop()
    return kept


def _holds(entry: Entry, item: Item) -> bool:
    """Return whether an entry is, or contains, an item."""
    is_own = entry.is_given if item.response_id is None else whole_turn_of(entry.turn_id) == item.response_id
    if not is_own:
        return False
    match item.body["type"], entry.message:
        case "message", AssistantMessage(text=text):
            return item.body["role"] == "assistant" and bool(text)
        case "message", _:
            kinds = {"user": EntryKind.USER, "system": EntryKind.SYSTEM, "developer": EntryKind.SYSTEM}
            return entry.kind is kinds.get(str(item.body["role"]))
        case "function_call_output" | "custom_tool_call_output", ToolMessage(call_id=call_id):
            return call_id == item.body["call_id"]
        case _, AssistantMessage(tool_calls=calls):
            return any(map(_is_call(item), calls))
        case _:
            return False


def _is_call(item: Item) -> IsCall:
    """Return whether a call is the one that an item shows; a search shows as an item without the id of its call."""
    match item.body["type"]:
        case "function_call" | "custom_tool_call":
            return lambda call: call.call_id == item.body["call_id"]
        case "file_search_call":
            return lambda call: call.name == KNOWLEDGE_BASE_SEARCH
        case "mcp_call":
            name = model_name(str(item.body["server_label"]), str(item.body["name"]))
            return lambda call: call.name == name and call.arguments == item.body["arguments"]
        case _:
            return lambda _: False


def _rest_of(entry: Entry, item: Item) -> list[Entry]:
    """Return what is left of the entry that holds an item: an answer may keep its text and its earlier calls."""
    message = entry.message
    if not isinstance(message, AssistantMessage) or item.body["type"] == "message":
        return []
    is_call = _is_call(item)
    place = next(place for place in reversed(range(len(message.tool_calls))) if is_call(message.tool_calls[place]))
    calls = (*message.tool_calls[:place], *message.tool_calls[place + 1 :])
    if not message.text and not calls:
        return []
    return [entry.model_copy(update={"message": AssistantMessage(text=message.text, tool_calls=calls)})]
