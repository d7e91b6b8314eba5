"""Conversations outside of turns: create and read them, append the items that a caller gives, and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.authors import add_author, add_author_to_bodies
from backend.conversations.domain.conversation_log import Entry, check_complete, find_pending_calls, history
from backend.conversations.domain.input_items import InputItem
from backend.conversations.domain.item_bodies import input_bodies
from backend.conversations.domain.item_removal import take_out
from backend.conversations.domain.members import ConversationRole, check_role
from backend.conversations.domain.responses import (
    Conversation,
    Item,
    OpenedConversation,
    conversation_cache_key,
    number_items,
)
from backend.conversations.domain.seeded_log import check_no_instructions, seed_entries
from backend.conversations.domain.turn_input import read_given_history
from backend.conversations.ports.conversations import ConversationStore
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.domain.paging import PageQuery
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from shared.clock import Clock
from shared.errors import MethodNotAllowed, NotFound
from shared.ids import IdPrefix, new_id


@dataclass(frozen=True)
class ItemQuery:
    """A query for a page of items: up to `limit` items that follow the item `after`, or the first ones without it."""

    limit: int
    descending: bool
    after: str | None


class Seed(NamedTuple):
    """Items that a caller gives to a conversation, whose log ends with the calls `waiting`."""

    caller: Caller
    conversation: Conversation
    given: Sequence[InputItem]
    waiting: Sequence[str]
    next_sequence: int
    now: datetime

    def rows(self) -> tuple[tuple[Entry, ...], tuple[Item, ...]]:
        """Return the entries and the items to store.

        Raises:
            InvalidRequest: an item is not allowed at its position; `param` names it.
        """
        author = self.conversation.people.author_of(self.caller.user_id)
        messages = add_author(read_given_history(self.given, self.waiting), author).history
        entries = seed_entries(self.conversation, messages, self.now)
        bodies = add_author_to_bodies(input_bodies(self.given, new_id), author)
        return entries, number_items(bodies, self.next_sequence, None)


@dataclass(frozen=True)
class ItemPage:
    """A page of items, and whether more items follow it."""

    items: tuple[Item, ...]
    has_more: bool


@dataclass(frozen=True)
class ConversationPage:
    """A page of conversations, and whether more follow it."""

    conversations: tuple[Conversation, ...]
    has_more: bool


class CallerConversations:
    """Manages the conversations of callers; for others than its members one does not exist.

    `secret` is the key by which the cache keys that are sent to providers are derived.
    """

    def __init__(self, store: ConversationStore, clock: Clock, secret: str) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret

    async def create(
        self, caller: Caller, given: Sequence[InputItem], metadata: dict[str, str], claim: KeyClaim | None = None
    ) -> Conversation:
        """Create a conversation whose history begins with the given items; its id is what a claim has created.

        Raises:
            KeyHeld: another request has used the key of the claim.
            InvalidRequest: an item is not allowed at its position; `param` names it.
        """
        conversation = self._empty_conversation(caller, metadata)
        check_no_instructions(given)
        seed = Seed(caller, conversation, given, (), 0, self._clock.now())
        entries, items = await run_in_thread_if_large(len(given), seed.rows)
        begun = conversation.model_copy(update={"log_length": len(entries)})
        await self._store.create(begun, entries, items, claim.of(begun.id) if claim is not None else None)
        return begun

    async def page(self, caller: Caller, query: PageQuery) -> ConversationPage:
        """Return a page of the conversations that the caller may read, by the time of their creation.

        Raises:
            NotFound: `after` is not one of them.
        """
        found = await self._store.list_readable(
            caller.tenant, caller.user_id, after=query.after, limit=query.limit + 1, descending=query.descending
        )
        return ConversationPage(found[: query.limit], has_more=len(found) > query.limit)

    async def find(self, caller: Caller, conversation_id: str) -> Conversation:
        """Return a conversation.

        Raises:
            NotFound: there is no such conversation, or the caller is no member.
        """
        return await self._find(caller, conversation_id, ConversationRole.READER)

    async def _find(self, caller: Caller, conversation_id: str, needed: ConversationRole) -> Conversation:
        found = await self._store.find(conversation_id)
        role = found.people.role_of(caller) if found is not None else None
        check_role(role, needed, _unknown(conversation_id))
        if found is None:
            raise _unknown(conversation_id)
        return found

    async def _open(self, caller: Caller, conversation_id: str, needed: ConversationRole) -> OpenedConversation:
        opened = await self._store.open(conversation_id, lambda found: found.people.allows(caller, needed))
        role = opened.conversation.people.role_of(caller) if opened is not None else None
        check_role(role, needed, _unknown(conversation_id))
        if opened is None:
            raise _unknown(conversation_id)
        return opened

    async def set_metadata(self, caller: Caller, conversation_id: str, metadata: dict[str, str]) -> Conversation:
        """Replace the caller's metadata.

        Raises:
            NotFound: there is no such conversation, or the caller is no member.
        """
        found = await self._find(caller, conversation_id, ConversationRole.OWNER)
        await self._store.set_metadata(conversation_id, metadata)
        return found.model_copy(update={"metadata": metadata})

    async def delete(self, caller: Caller, conversation_id: str) -> None:
        """Delete a conversation with its log and items, and its creator's branches of it in lanes; responses stay.

        Raises:
            NotFound: there is no such conversation, or the caller is no member.
            PermissionDenied: the caller is no owner.
            TurnRunning: a turn runs on one of them.
        """
        await self._find(caller, conversation_id, ConversationRole.OWNER)
        await self._store.delete(conversation_id)

    async def add_items(
        self, caller: Caller, conversation_id: str, given: Sequence[InputItem], claim: KeyClaim | None = None
    ) -> tuple[Item, ...]:
        """Append items to the history: either all of them or none; `items_added` reads what a claim has created.

        Raises:
            KeyHeld: another request has used the key of the claim.
            InvalidRequest: an item is not allowed at its position; `param` names it.
            NotFound: there is no such conversation, or the caller is no member.
            TurnRunning: a turn runs on it, or its log has changed since it was read.
        """
        opened = await self._open(caller, conversation_id, ConversationRole.WRITER)
        check_no_instructions(given)
        found, waiting = opened.conversation, find_pending_calls(history(opened.log))
        seed = Seed(caller, found, given, waiting, opened.next_sequence, self._clock.now())
        entries, items = await run_in_thread_if_large(len(given), seed.rows)
        claimed = claim.of(f"{items[0].id} {len(items)}") if claim is not None else None
        await self._store.append(conversation_id, found.log_length, entries, items, claimed)
        return items

    async def remove_item(self, caller: Caller, conversation_id: str, item_id: str) -> Conversation:
        """Take the last item out of a conversation; requests to the model end before it from then on.

        Raises:
            NotFound: there is no such conversation or item, or the caller is no member.
            TurnRunning: a turn runs on it, or its log has changed since it was read.
            MethodNotAllowed: another item follows.
            CorruptRecord: its log cannot be read, or a part of it is missing.
        """
        opened = await self._open(caller, conversation_id, ConversationRole.OWNER)
        found, log = opened.conversation, opened.log
        item = await self.item(caller, conversation_id, item_id)
        if found.running_response_id is not None:
            raise found.refusal
        if await self._store.items(conversation_id, after=item_id, limit=1, descending=False):
            message = f"Only the last item of a conversation can be removed, and others follow '{item_id}'."
            raise MethodNotAllowed(message, param="item_id")
        check_complete(conversation_id, log, found.log_length)
        now = self._clock.now()
        removed = await run_in_thread_if_large(len(log), lambda: take_out(conversation_id, log, item, now))
        await self._store.remove(conversation_id, found.log_length, removed)
        return found

    async def items_added(self, caller: Caller, conversation_id: str, created: str) -> tuple[Item, ...]:
        """Return the items that a claim of `add_items` has created.

        Raises:
            NotFound: there is no such conversation any more, or the caller is no member.
        """
        first_id, count = created.split()
        first = await self.item(caller, conversation_id, first_id)
        rest = await self._store.items(conversation_id, after=first_id, limit=int(count) - 1, descending=False)
        return (first, *rest)

    async def items(self, caller: Caller, conversation_id: str, query: ItemQuery) -> ItemPage:
        """Return a page of items.

        Raises:
            NotFound: there is no such conversation, or `after` is not an item of it.
        """
        await self.find(caller, conversation_id)
        found = await self._store.items(
            conversation_id, after=query.after, limit=query.limit + 1, descending=query.descending
        )
        return ItemPage(found[: query.limit], has_more=len(found) > query.limit)

    async def item(self, caller: Caller, conversation_id: str, item_id: str) -> Item:
        """Return one item.

        Raises:
            NotFound: there is no such conversation, or no such item in it.
        """
        await self.find(caller, conversation_id)
        found = await self._store.find_item(conversation_id, item_id)
        if found is None:
            raise NotFound(f"There is no item '{item_id}' in this conversation.")
        return found

    def _empty_conversation(self, caller: Caller, metadata: dict[str, str]) -> Conversation:
        conversation_id = new_id(IdPrefix.CONVERSATION)
        return Conversation(
            id=conversation_id,
            tenant=caller.tenant,
            user_id=caller.user_id,
            created_at=self._clock.now(),
            metadata=metadata,
            log_length=0,
            epoch=0,
            model="",
            instructions="",
            functions=(),
            knowledge_base_ids=(),
            cache_key=conversation_cache_key(self._secret, caller.tenant, conversation_id),
            running_response_id=None,
            latest_response_id=None,
        )


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(f"There is no conversation '{conversation_id}'.", param="conversation_id")
