"""An in-memory `TurnStore`."""

from collections.abc import Sequence
from datetime import datetime

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade, ModelCall
from backend.conversations.domain.responses import Checkpoint, FinishedTurn, NewTurn, StoredResponse
from shared.errors import NotFound, TurnRunning
from tests.fakes.store_claims import take_key
from tests.fakes.store_state import StoreState


class FakeTurnStore:
    """Keeps responses in a `StoreState`, and writes the conversations of its turns there."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and take the conversation for it."""
        conversation_id = turn.conversation.id
        changed = turn.conversation
        if turn.expected_log_length is not None:
            stored = self._state.conversations.get(conversation_id)
            if stored is None:
                raise NotFound("There is no such conversation.")
            if stored.running_response_id is not None or stored.log_length != turn.expected_log_length:
                raise TurnRunning("A turn is running on this conversation.")
            kept = stored.model_dump(include={"metadata", "created_at"})
            changed = changed.model_copy(update={**kept, "sent": stored.sent})
        take_key(self._state.claims, turn.claim)
        self._state.conversations[conversation_id] = changed
        self._state.entries.setdefault(conversation_id, []).extend(turn.entries)
        self._state.items.setdefault(conversation_id, []).extend(turn.items)
        self._state.responses[turn.response.id] = turn.response

    async def append(
        self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry], calls: CallsMade = NO_CALLS
    ) -> None:
        """Append what a running turn has added."""
        conversation = self._state.conversations.get(conversation_id)
        held = conversation is not None and conversation.running_response_id is not None
        if conversation is None or not held or conversation.log_length != expected_log_length:
            raise TurnRunning("The conversation has changed meanwhile.")
        length = expected_log_length + len(entries)
        growth = {"log_length": length, "sent": calls.sent or conversation.sent}
        self._state.conversations[conversation_id] = conversation.model_copy(update=growth)
        self._state.entries[conversation_id].extend(entries)
        self._calls_of(calls).update((call.call, call) for call in calls.calls)

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Keep what running turns have said so far; no effect once terminal."""
        for checkpoint in checkpoints:
            self._keep(checkpoint)

    def _keep(self, checkpoint: Checkpoint) -> None:
        stored = self._state.responses.get(checkpoint.response_id)
        if stored is None or stored.status.is_terminal:
            return
        body = {**stored.body, "output": list(checkpoint.output)}
        changed = stored.model_copy(update={"body": body, "last_event": checkpoint.last_event})
        self._state.responses[checkpoint.response_id] = changed
        for call in checkpoint.calls.calls:
            self._calls_of(checkpoint.calls).setdefault(call.call, call)

    def _calls_of(self, made: CallsMade) -> dict[int, ModelCall]:
        return self._state.calls.setdefault(made.response_id, {})

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and free the conversation; False when it had ended already."""
        response = turn.response
        stored = self._state.responses.get(response.id)
        if stored is None or stored.status.is_terminal:
            return False
        conversation = self._state.conversations[response.conversation_id]
        if turn.entries and turn.entries[0].position != conversation.log_length:
            raise TurnRunning("The conversation has changed meanwhile.")
        freed = {
            "running_response_id": None,
            "log_length": conversation.log_length + len(turn.entries),
            "sent": turn.calls.sent or conversation.sent,
        }
        self._state.conversations[conversation.id] = conversation.model_copy(update=freed)
        self._state.entries[conversation.id].extend(turn.entries)
        self._state.items[conversation.id].extend(turn.items)
        self._calls_of(turn.calls).update((call.call, call) for call in turn.calls.calls)
        self._store_end(response, stored)
        return True

    def _store_end(self, response: StoredResponse, stored: StoredResponse) -> None:
        if response.id in self._state.deleted_response_ids:
            self._forget(response.id)
            return
        changed = response.model_copy(update={"input_items": stored.input_items})
        self._state.responses[response.id] = changed

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""
        if response_id in self._state.deleted_response_ids:
            return None
        return self._state.responses.get(response_id)

    async def delete(self, response_id: str) -> None:
        """Make a response unretrievable; a running one goes on and leaves no response behind."""
        stored = self._state.responses.get(response_id)
        if stored is None:
            return
        if stored.status.is_terminal:
            self._forget(response_id)
        else:
            self._state.deleted_response_ids.add(response_id)

    def _forget(self, response_id: str) -> None:
        del self._state.responses[response_id]
        self._state.calls.pop(response_id, None)

    async def model_calls(self, response_id: str) -> tuple[ModelCall, ...]:
        """Return the calls of a turn that are kept, in order."""
        calls = self._state.calls.get(response_id, {})
        return tuple(calls[number] for number in sorted(calls))

    async def unfinished(self, *, alive_since: datetime | None) -> tuple[StoredResponse, ...]:
        """Return responses in progress whose replica has not been seen alive since that instant."""
        running = [r for r in self._state.responses.values() if not r.status.is_terminal]
        dead = [r for r in running if alive_since is None or not self._is_alive(r.replica, alive_since)]
        return tuple(sorted(dead, key=lambda response: (response.created_at, response.id)))

    def _is_alive(self, replica: str, since: datetime) -> bool:
        seen_at = self._state.replica_seen_at.get(replica)
        return seen_at is not None and seen_at >= since

    async def beat(self, replica: str, now: datetime) -> None:
        """Record that this replica lives."""
        self._state.replica_seen_at[replica] = now
