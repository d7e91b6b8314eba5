"""The storage of conversations, their logs, items and responses."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.members import ConversationRole, People
from backend.conversations.domain.model_calls import ModelCall
from backend.conversations.domain.responses import (
    Checkpoint,
    Conversation,
    Exchange,
    FinishedTurn,
    Hold,
    Item,
    NewTurn,
    OpenedConversation,
    OwnedItem,
    Removal,
    SettingsDigest,
    StoredResponse,
)
from backend.foundation.domain.idempotency import KeyClaim
from backend.knowledge.domain.labels import Labels


class ConversationStore(Protocol):
    """Stores conversations outside of turns. The caller of a method checks the role of the user it is called for."""

    async def create(
        self,
        conversation: Conversation,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Store a new conversation with its first entries and items.

        Raises:
            KeyHeld: another request has used the key of the claim.
        """
        ...

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return the conversation, or None when there is none."""
        ...

    async def list_readable(
        self, tenant: str, user_id: str, *, after: str | None, limit: int, descending: bool
    ) -> tuple[Conversation, ...]:
        """Return up to `limit` conversations that a user may read, by the time of their creation, behind `after`.

        Raises:
            NotFound: `after` names no conversation that this user may read.
        """
        ...

    async def open(self, conversation_id: str, needs_log: Callable[[Conversation], bool]) -> OpenedConversation | None:
        """Return the conversation, and in the same unit of work its log where `needs_log` returns true, or None.

        Raises:
            CorruptRecord: a row cannot be read; the message names conversation and position.
        """
        ...

    async def people(self, conversation_id: str) -> People | None:
        """Return the members of the conversation, or None when there is none."""
        ...

    async def set_member(self, conversation_id: str, user_id: str, role: ConversationRole, most: int) -> bool:
        """Share the conversation with a user, or change their role; return whether they are new.

        Raises:
            Conflict: the conversation is shared with so many people as `most` already.
            NotFound: the conversation was deleted meanwhile.
        """
        ...

    async def remove_member(self, conversation_id: str, user_id: str) -> bool:
        """Take the conversation from a user with whom it was shared; return False where it was not."""
        ...

    async def set_metadata(self, conversation_id: str, metadata: dict[str, str]) -> None:
        """Replace the caller's metadata."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its log and items; its responses stay.

        With it go the conversations of the same creator in which lanes of its responses have answered: all or none.

        Raises:
            TurnRunning: a turn runs on one of them. Retryable later.
        """
        ...

    async def find_left_of_deleted(self) -> Sequence[str]:
        """Return deleted conversations of which rows are left: who deleted them did not come to the end."""
        ...

    async def clear(self, conversation_id: str) -> None:
        """Delete what is left of a deleted conversation.

        Raises:
            Unavailable: the database is away; what was deleted by then stays deleted.
        """
        ...

    async def append(
        self,
        conversation_id: str,
        expected_log_length: int,
        entries: Sequence[Entry],
        items: Sequence[Item],
        claim: KeyClaim | None = None,
    ) -> None:
        """Append entries and items outside of a turn.

        Raises:
            KeyHeld: another request has used the key of the claim.
            TurnRunning: a turn runs on the conversation, or the log no longer has the expected length.
        """
        ...

    async def remove(self, conversation_id: str, expected_log_length: int, removal: Removal) -> None:
        """Take an item out of a conversation, and append the entries that do so; its sequence is not given again.

        Raises:
            TurnRunning: a turn runs on the conversation, or the log no longer has the expected length.
        """
        ...

    async def log(self, conversation_id: str, end: int | None = None) -> tuple[Entry, ...]:
        """Return the entries at positions below `end` (all of them without it), in order.

        Raises:
            CorruptRecord: a row cannot be read; the message names conversation and position.
        """
        ...

    async def labels(self, conversation_id: str) -> Mapping[str, Labels]:
        """Return the label of each turn that has one, by the turn's id."""
        ...

    async def labels_of_turns(self, turn_ids: Sequence[str]) -> Mapping[str, Labels]:
        """Return the labels of those of these turns that have one and stand in a log, in whatever conversation."""
        ...

    async def items(self, conversation_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Item, ...]:
        """Return up to `limit` items behind the item `after` in the given order.

        Raises:
            NotFound: `after` names no item of this conversation.
        """
        ...

    async def all_items(self, conversation_id: str, end: int, log_end: int) -> tuple[Item, ...]:
        """Return the items with a sequence below `end` that were there when the log had the length `log_end`."""
        ...

    async def find_owned_items(self, tenant: str, user_id: str, ids: Sequence[str]) -> tuple[OwnedItem, ...]:
        """Return those of these items that are in conversations that a user may read, each once: forks share items."""
        ...

    async def find_item(self, conversation_id: str, item_id: str) -> Item | None:
        """Return one item, or None."""
        ...


class TurnStore(Protocol):
    """Stores what a turn writes. Each method is one transaction."""

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and lock the conversation for it.

        Raises:
            KeyHeld: another request has used the key of the turn's claim.
            TurnRunning: another turn runs on the conversation, or its log no longer has the expected length.
        """
        ...

    async def begin_together(self, turns: Sequence[NewTurn]) -> None:
        """Store turns in different conversations, all or none; one of them may have a claim.

        Raises:
            KeyHeld: another request has used the key of the claim.
            TurnRunning: as for `begin`, in one of the conversations.
        """
        ...

    async def append(self, hold: Hold, expected_log_length: int, exchange: Exchange) -> None:
        """Append an exchange of a running turn before its next model call, with its output and its calls so far.

        One that an earlier attempt has stored is left as it is.

        Raises:
            NoLongerWaiting: a waiting turn that the exchange names does not wait any more; nothing is written.
            TurnTaken: the turn has ended, or another process has taken it over.
            TurnRunning: the log does not have the expected length, because another writer has appended to it.
        """
        ...

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
        """Store the outputs of running turns so far, all that can be or none, each of another turn.

        Of what is stored already the newer stays, in whichever order checkpoints and exchanges arrive.
        Return the ids of those that have no effect: the turn has ended, or another process has taken it over.
        """
        ...

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and unlock the conversation; return False where it was ended or taken before."""
        ...

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""
        ...

    async def newest_seen(self, digests: Sequence[str], wanted: SettingsDigest) -> Mapping[str, str]:
        """Return the response to go on from at each of these chains, by the chain; none for one without any.

        Of the newest 64 that ended there, it is the newest that ran with the wanted settings; where there is none, the
        newest that had the wanted `header`, else the newest of all.
        Responses that were deleted do not count, nor those whose conversation was.
        """
        ...

    async def model_calls(self, response_id: str) -> tuple[ModelCall, ...]:
        """Return the stored model calls of a turn, in order.

        Raises:
            CorruptRecord: a row cannot be read; the message names response and call.
        """
        ...

    async def find_placed_texts(self, conversation_id: str, digests: Collection[str]) -> Mapping[str, str]:
        """Return the texts that requests of a conversation hold outside of its log, by their digests.

        Digests of which there is no text are left out.
        """
        ...

    async def delete(self, response_id: str) -> None:
        """Delete a response and its model calls; the conversation keeps its log and items."""
        ...

    async def renew(self, replica: str, terms: LeaseTerms) -> None:
        """Extend the lease that a replica holds on its turns, in the time of the store.

        A replica whose renewal is its first, or was held up, judges nobody for the length of a lease: the store may
        have been away, and then the others could not renew theirs.
        It waits for no other work of its process, and fails while another one can still be in time.
        """
        ...

    async def take_abandoned(self, replica: str, terms: LeaseTerms, limit: int) -> tuple[TakenTurn, ...]:
        """Take over up to `limit` turns of other replicas, the oldest first, and raise their fencing numbers.

        These are the turns that were released, and those of a replica without a lease if `replica` may judge others:
        its own lease was renewed just now and has not been interrupted lately.
        """
        ...

    async def find_running_ids(self, replica: str) -> frozenset[str]:
        """Return the ids of the running turns that a replica holds."""
        ...

    async def take_again(self, replica: str, ids: Sequence[str]) -> tuple[TakenTurn, ...]:
        """Take over those of a replica's own running turns that nobody in its process runs, and raise their fences.

        They were stored, or taken over, by a call whose answer never came.
        """
        ...

    async def take_all(self, replica: str) -> tuple[TakenTurn, ...]:
        """Take over all running turns of other processes; this is for a process that is the only replica."""
        ...

    async def release(self, hold: Hold) -> None:
        """Give a turn up, so that any other replica may take it over at once; no effect where one has done so."""
        ...
