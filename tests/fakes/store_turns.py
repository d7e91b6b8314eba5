"""An in-memory `TurnStore`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.model_calls import CallsMade, ModelCall
from backend.conversations.domain.placed_blocks import text_digest
from backend.conversations.domain.responses import (
    Checkpoint,
    Conversation,
    Exchange,
    FinishedTurn,
    Hold,
    ItemBody,
    NewTurn,
    SettingsDigest,
    StoredResponse,
)
from backend.conversations.domain.waiting_turns import Entered
from shared.errors import NoLongerWaiting, NotFound, TurnRunning, TurnTaken
from tests.fakes.store_claims import take_key
from tests.fakes.store_state import KeptPlan, ReplicaLease, StoreState


class FakeTurnStore:
    """Keeps responses in a `StoreState`, and writes the conversations of its turns there."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and take the conversation for it."""
        await self.begin_together((turn,))

    async def begin_together(self, turns: Sequence[NewTurn]) -> None:
        """Store turns, all or none."""
        taken = [self._taken(turn) for turn in turns]
        for turn in turns:
            take_key(self._state.claims, turn.claim)
        for turn, conversation in zip(turns, taken, strict=True):
            self._keep(turn, conversation)

    def _taken(self, turn: NewTurn) -> Conversation:
        """Return the conversation as the turn takes it."""
        if turn.expected_log_length is None:
            return turn.conversation
        stored = self._state.conversations.get(turn.conversation.id)
        if stored is None:
            raise NotFound("There is no such conversation.")
        if stored.running_response_id is not None or stored.log_length != turn.expected_log_length:
            raise TurnRunning("A turn is running on this conversation.")
        self._take_first(turn)
        kept = stored.model_dump(include={"metadata", "created_at", "members"})
        return turn.conversation.model_copy(update={**kept, "sent": stored.sent})

    def _keep(self, turn: NewTurn, conversation: Conversation) -> None:
        conversation_id = conversation.id
        self._state.conversations[conversation_id] = conversation
        self._state.entries.setdefault(conversation_id, []).extend(turn.entries)
        self._state.items.setdefault(conversation_id, []).extend(turn.items)
        self._state.responses[turn.response.id] = turn.response
        self._state.plans[turn.response.id] = KeptPlan(turn.plan, turn.context_parts, turn.response.last_event)
        kept = self._state.texts.setdefault(conversation_id, {})
        kept.update((text_digest(text), text) for text in turn.texts)

    def _take_first(self, turn: NewTurn) -> None:
        waiting = [each.response.id for each in self._state.waiting_of(turn.conversation.id)]
        if waiting[:1] != ([turn.response.id] if turn.has_waited else []):
            raise TurnRunning("Another turn comes next in this conversation.")
        self._state.waiting.pop(turn.response.id, None)

    async def append(self, hold: Hold, expected_log_length: int, exchange: Exchange) -> None:
        """Append what a running turn has added."""
        stored = self._held(hold)
        conversation = self._state.conversations[hold.conversation_id]
        length = expected_log_length + len(exchange.entries)
        if conversation.log_length == length:
            return
        if conversation.log_length != expected_log_length:
            raise TurnRunning("The conversation has changed meanwhile.")
        epoch = exchange.entries[-1].epoch if exchange.entries else conversation.epoch
        if not self._state.waiting.keys() >= set(exchange.steered_by):
            raise NoLongerWaiting("The message has been withdrawn.")
        for waiting_id in exchange.steered_by:
            waiting = self._state.waiting[waiting_id]
            self._state.entered[waiting_id] = Entered(
                response_id=stored.id, output_count=len(exchange.output), items=waiting.response.input_items
            )
            del self._state.waiting[waiting_id]
        growth = {"log_length": length, "epoch": epoch, "sent": exchange.calls.sent or conversation.sent}
        self._state.conversations[conversation.id] = conversation.model_copy(update=growth)
        self._state.entries[conversation.id].extend(exchange.entries)
        self._calls_of(exchange.calls).update((call.call, call) for call in exchange.calls.calls)
        self._keep_output(stored, exchange.output, exchange.last_event)
        kept = self._state.plans[hold.response_id]
        self._state.plans[hold.response_id] = kept._replace(settled_event=exchange.last_event)

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
        """Keep what running turns have said so far; return the ids of those that have ended or were taken over."""
        return frozenset(each.hold.response_id for each in checkpoints if not self._keeps(each))

    def _keeps(self, checkpoint: Checkpoint) -> bool:
        try:
            stored = self._held(checkpoint.hold)
        except TurnTaken:
            return False
        self._keep_output(stored, checkpoint.output, checkpoint.last_event)
        for call in checkpoint.calls.calls:
            self._calls_of(checkpoint.calls).setdefault(call.call, call)
        return True

    def _keep_output(self, stored: StoredResponse, output: Sequence[ItemBody], last_event: int) -> None:
        if last_event > stored.last_event:
            body = {**stored.body, "output": list(output)}
            self._state.responses[stored.id] = stored.model_copy(update={"body": body, "last_event": last_event})

    def _held(self, hold: Hold) -> StoredResponse:
        stored = self._state.responses.get(hold.response_id)
        if stored is None or stored.status.is_terminal or stored.fence != hold.fence:
            raise TurnTaken("The turn has ended, or another process has taken it over.")
        return stored

    def _calls_of(self, made: CallsMade) -> dict[int, ModelCall]:
        return self._state.calls.setdefault(made.response_id, {})

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and free the conversation; False when it had ended already."""
        response = turn.response
        stored = self._state.responses.get(response.id)
        if stored is None or stored.status.is_terminal or stored.fence != response.fence:
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
        if response.seen is not None:
            self._state.seen.append((response.seen, response))

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""
        if response_id in self._state.deleted_response_ids:
            return None
        waiting, entered = self._state.waiting.get(response_id), self._state.entered.get(response_id)
        if entered is not None:
            return await self.find(entered.response_id)
        return waiting.response if waiting is not None else self._state.responses.get(response_id)

    async def newest_seen(self, digests: Sequence[str], wanted: SettingsDigest) -> Mapping[str, str]:
        """Return the newest response that ended at each of these chains, those with the wanted settings first."""

        def suits(one: StoredResponse) -> tuple[bool, bool]:
            has_header = one.ran_with is not None and one.ran_with.header == wanted.header
            return has_header, one.ran_with == wanted

        found: dict[str, StoredResponse] = {}
        for digest in digests:
            alike = [
                one
                for seen, one in reversed(self._state.seen)
                if seen == digest
                and one.id in self._state.responses
                and one.conversation_id in self._state.conversations
            ]
            if alike:
                found[digest] = max(alike[:64], key=suits)
        return {digest: one.id for digest, one in found.items()}

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

    async def find_placed_texts(self, conversation_id: str, digests: Collection[str]) -> Mapping[str, str]:
        """Return those of these texts that are kept."""
        kept = self._state.texts.get(conversation_id, {})
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def renew(self, replica: str, terms: LeaseTerms) -> None:
        """Extend the lease of a replica."""
        now = self._state.clock.now()
        end = now + timedelta(seconds=terms.seconds)
        lease = self._state.leases.get(replica)
        is_held_up = lease is None or lease.seen_at < now - timedelta(seconds=terms.gap_seconds)
        trusted_from = end if lease is None or is_held_up else lease.trusted_from
        self._state.leases[replica] = ReplicaLease(now, end, trusted_from)

    async def take_abandoned(self, replica: str, terms: LeaseTerms, limit: int) -> tuple[TakenTurn, ...]:
        """Take over turns of replicas without a lease, and released ones."""
        now, own = self._state.clock.now(), self._state.leases.get(replica)
        if own is None or own.expires_at < now:
            return ()
        is_fresh = own.seen_at >= now - timedelta(seconds=terms.fresh_seconds)
        judges = is_fresh and own.trusted_from <= now
        alive = {name for name, lease in self._state.leases.items() if lease.expires_at >= now}
        running = [one for one in self._running() if one.replica != replica]
        abandoned = [one for one in running if not one.replica or (judges and one.replica not in alive)]
        return tuple(self._take(one, replica) for one in abandoned[:limit])

    async def find_running_ids(self, replica: str) -> frozenset[str]:
        """Return the ids of the turns of a replica."""
        return frozenset(one.id for one in self._running() if one.replica == replica)

    async def take_again(self, replica: str, ids: Sequence[str]) -> tuple[TakenTurn, ...]:
        """Take over turns of the replica itself."""
        return tuple(self._take(one, replica) for one in self._running() if one.replica == replica and one.id in ids)

    async def take_all(self, replica: str) -> tuple[TakenTurn, ...]:
        """Take over the turns of all others."""
        return tuple(self._take(one, replica) for one in self._running() if one.replica != replica)

    async def release(self, hold: Hold) -> None:
        """Give a turn up."""
        stored = self._state.responses.get(hold.response_id)
        if stored is not None and not stored.status.is_terminal and stored.fence == hold.fence:
            self._state.responses[stored.id] = stored.model_copy(update={"replica": ""})

    def _running(self) -> list[StoredResponse]:
        running = [one for one in self._state.responses.values() if not one.status.is_terminal]
        return sorted(running, key=lambda response: (response.created_at, response.id))

    def _take(self, response: StoredResponse, replica: str) -> TakenTurn:
        taken = response.model_copy(update={"replica": replica, "fence": response.fence + 1})
        self._state.responses[response.id] = taken
        return TakenTurn(response=taken, **self._state.plans[response.id]._asdict())
