"""An in-memory `ConversationStore`."""

from collections.abc import Callable, Mapping, Sequence

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.members import ConversationRole, People
from backend.conversations.domain.responses import (
    JOINED_IN,
    Conversation,
    Item,
    OpenedConversation,
    OwnedItem,
    Removal,
    SeenPoint,
    lane_conversations,
    shows,
)
from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.labels import Labels
from shared.errors import Conflict, NotFound, TurnRunning
from tests.fakes.store_claims import take_key
from tests.fakes.store_state import StoreState


class FakeConversationStore:
    """Keeps conversations in a `StoreState`."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def create(
        self,
        conversation: Conversation,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Store a new conversation with what it begins with."""
        take_key(self._state.claims, claim)
        self._state.conversations[conversation.id] = conversation
        self._state.entries[conversation.id] = list(entries)
        self._state.items[conversation.id] = list(items)

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return the conversation, or None."""
        return self._state.conversations.get(conversation_id)

    async def list_readable(
        self, tenant: str, user_id: str, *, after: str | None, limit: int, descending: bool
    ) -> tuple[Conversation, ...]:
        """Return up to `limit` conversations that a user may read, behind `after`."""
        readable = [
            each
            for each in self._state.conversations.values()
            if each.tenant == tenant and user_id in each.people.roles
            if each.log_length > 0 or each.latest_response_id is None
        ]
        ordered = sorted(readable, key=lambda each: (each.created_at, each.id), reverse=descending)
        places = {each.id: place for place, each in enumerate(ordered)}
        if after is not None and after not in places:
            raise NotFound(f"There is no conversation '{after}'.", param="after")
        start = places[after] + 1 if after is not None else 0
        return tuple(ordered[start : start + limit])

    async def open(self, conversation_id: str, needs_log: Callable[[Conversation], bool]) -> OpenedConversation | None:
        """Return the conversation, with its log where it is needed."""
        found = await self.find(conversation_id)
        if found is None:
            return None
        log = await self.log(conversation_id, found.log_length) if needs_log(found) else ()
        sequence = self._next_sequence(conversation_id)
        seen = self._newest_seen(found)
        return OpenedConversation(conversation=found, log=log, next_sequence=sequence, seen=seen)

    def _next_sequence(self, conversation_id: str) -> int:
        removed = [item for _, item in self._state.removed.get(conversation_id, ())]
        return max([item.sequence for item in (*self._state.items.get(conversation_id, ()), *removed)], default=-1) + 1

    def _newest_seen(self, conversation: Conversation) -> SeenPoint | None:
        newest = self._state.responses.get(conversation.latest_response_id or "")
        if newest is None or newest.seen is None or newest.log_end is None:
            return None
        return SeenPoint(digest=newest.seen, log_end=newest.log_end)

    async def people(self, conversation_id: str) -> People | None:
        """Return who may use the conversation, or None."""
        found = self._state.conversations.get(conversation_id)
        return found.people if found is not None else None

    async def set_member(self, conversation_id: str, user_id: str, role: ConversationRole, most: int) -> bool:
        """Share the conversation with a user, or change their role; return whether they are new."""
        found = self._state.conversations.get(conversation_id)
        if found is None:
            raise NotFound("The conversation was deleted meanwhile.", param="conversation_id")
        others = found.members or {}
        if user_id not in others and len(others) >= most:
            raise Conflict(f"The conversation is shared with {most} people.", param="user_id")
        changed = found.model_copy(update={"members": {**others, user_id: role}})
        self._state.conversations[conversation_id] = changed
        return user_id not in others

    async def remove_member(self, conversation_id: str, user_id: str) -> bool:
        """Take the conversation from a user; False where they had no role in it."""
        found = self._state.conversations.get(conversation_id)
        others = dict(found.members or {}) if found is not None else {}
        if found is None or others.pop(user_id, None) is None:
            return False
        self._state.conversations[conversation_id] = found.model_copy(update={"members": others})
        return True

    async def set_metadata(self, conversation_id: str, metadata: dict[str, str]) -> None:
        """Replace the caller's metadata; no effect when there is no such conversation."""
        conversation = self._state.conversations.get(conversation_id)
        if conversation is not None:
            changed = conversation.model_copy(update={"metadata": dict(metadata)})
            self._state.conversations[conversation_id] = changed

    async def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its log and items."""
        if conversation_id not in self._state.conversations:
            return
        together = [conversation_id, *self._branches(conversation_id)]
        for each in together:
            if self._state.conversations[each].running_response_id is not None or self._state.waiting_of(each):
                raise TurnRunning("A turn is running on this conversation.")
        for each in together:
            self._forget(each)

    async def find_left_of_deleted(self) -> Sequence[str]:
        """Return none: what is deleted here is gone at once."""
        return ()

    async def clear(self, conversation_id: str) -> None:
        """Return: nothing is left."""

    def _branches(self, conversation_id: str) -> list[str]:
        found, known = self._state.conversations[conversation_id], self._state.responses
        named = {item.response_id for item in self._state.items.get(conversation_id, ())}
        joined = {str(one.body.get(JOINED_IN)) for one in known.values() if one.id in named}
        shown = [one for one in known.values() if one.id in joined and shows(one.body, conversation_id)]
        places = {place for one in shown for place in (one.conversation_id, *lane_conversations(one.body))}
        others = [self._state.conversations[place] for place in sorted(places) if place in self._state.conversations]
        creator = (found.tenant, found.user_id)
        return [one.id for one in others if (one.tenant, one.user_id) == creator and one.id != conversation_id]

    def _forget(self, conversation_id: str) -> None:
        self._state.conversations.pop(conversation_id, None)
        self._state.entries.pop(conversation_id, None)
        self._state.items.pop(conversation_id, None)
        self._state.removed.pop(conversation_id, None)
        for response in self._state.responses.values():
            if response.conversation_id == conversation_id:
                self._state.calls.pop(response.id, None)

    async def append(
        self,
        conversation_id: str,
        expected_log_length: int,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Append outside of a turn."""
        conversation = self._state.conversations.get(conversation_id)
        if conversation is None:
            raise NotFound("There is no such conversation.")
        is_held = conversation.running_response_id is not None or self._state.waiting_of(conversation_id)
        if is_held or conversation.log_length != expected_log_length:
            raise TurnRunning("The conversation has changed meanwhile.")
        stored_items = self._state.items[conversation_id]
        if items and items[0].sequence != self._next_sequence(conversation_id):
            raise TurnRunning("The conversation has changed meanwhile.")
        take_key(self._state.claims, claim)
        length = expected_log_length + len(entries)
        self._state.conversations[conversation_id] = conversation.model_copy(update={"log_length": length})
        self._state.entries[conversation_id].extend(entries)
        stored_items.extend(items)

    async def remove(self, conversation_id: str, expected_log_length: int, removal: Removal) -> None:
        """Take an item out, and append the entries that do so."""
        await self.append(conversation_id, expected_log_length, removal.entries, ())
        changed = self._state.conversations[conversation_id].model_copy(update={"epoch": removal.epoch})
        self._state.conversations[conversation_id] = changed
        self._state.items[conversation_id].remove(removal.item)
        self._state.removed.setdefault(conversation_id, []).append((expected_log_length, removal.item))

    async def log(self, conversation_id: str, end: int | None = None) -> tuple[Entry, ...]:
        """Return the entries at positions below `end`, in order."""
        return tuple(self._state.entries.get(conversation_id, ())[:end])

    async def labels(self, conversation_id: str) -> Mapping[str, Labels]:
        """Return the label of each turn that has one, by the turn's id."""
        return {entry.turn_id: entry.label for entry in self._state.entries.get(conversation_id, ()) if entry.label}

    async def labels_of_turns(self, turn_ids: Sequence[str]) -> Mapping[str, Labels]:
        """Return the labels of those of the turns that stand in a log."""
        labelled = [entry for log in self._state.entries.values() for entry in log if entry.label]
        return {entry.turn_id: entry.label for entry in labelled if entry.turn_id in turn_ids}

    async def items(self, conversation_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Item, ...]:
        """Return up to `limit` items behind the item `after` in the given order."""
        ordered = list(self._state.items.get(conversation_id, ()))
        if descending:
            ordered.reverse()
        if after is None:
            return tuple(ordered[:limit])
        for place, item in enumerate(ordered):
            if item.id == after:
                return tuple(ordered[place + 1 : place + 1 + limit])
        raise NotFound("There is no such item in this conversation.", param="after")

    async def all_items(self, conversation_id: str, end: int, log_end: int) -> tuple[Item, ...]:
        """Return the items with a sequence below `end` that were there when the log had that length."""
        later = [item for at, item in self._state.removed.get(conversation_id, ()) if at >= log_end]
        found = [item for item in (*self._state.items.get(conversation_id, ()), *later) if item.sequence < end]
        return tuple(sorted(found, key=lambda item: item.sequence))

    async def find_owned_items(self, tenant: str, user_id: str, ids: Sequence[str]) -> tuple[OwnedItem, ...]:
        """Return those of these items that are in conversations of a user, each once."""
        own = [
            one for one in self._state.conversations.values() if one.tenant == tenant and user_id in one.people.roles
        ]
        found = {
            item.id: OwnedItem(conversation_id=one.id, item=item, is_shared=one.people.is_shared)
            for one in own
            for item in self._state.items.get(one.id, ())
            if item.id in ids
        }
        return tuple(found.values())

    async def find_item(self, conversation_id: str, item_id: str) -> Item | None:
        """Return one item, or None."""
        return next((item for item in self._state.items.get(conversation_id, ()) if item.id == item_id), None)
