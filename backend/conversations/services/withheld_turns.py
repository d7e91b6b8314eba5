"""A caller's own responses, without text from knowledge to which they have lost access."""

from collections.abc import Sequence

from backend.conversations.domain.model_calls import WithheldTurns
from backend.conversations.domain.responses import Item, ItemBody, StoredResponse
from backend.conversations.domain.withheld import empty_body, empty_item
from backend.conversations.ports.conversations import ConversationStore
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import Label, may_read
from backend.knowledge.services.knowledge_access import LabelAccess


class WithheldText:
    """Replaces stored text that came from knowledge by notices, for readers who have lost access to that knowledge."""

    def __init__(self, conversations: ConversationStore, access: LabelAccess) -> None:
        self._conversations = conversations
        self._access = access

    async def of(self, caller: Caller, conversation_id: str) -> WithheldTurns:
        """Return the turns that are withheld from this caller."""
        labels = await self._conversations.labels(conversation_id)
        access = await self._access.of(caller, frozenset[Label]().union(*labels.values()))
        ids = frozenset(turn_id for turn_id, label in labels.items() if not may_read(access, label))
        return WithheldTurns(ids, with_users=bool(ids) and await self._is_shared(conversation_id))

    async def concerns(self, caller: Caller, response: StoredResponse) -> bool:
        """Return whether a response, running or ended, is withheld from this caller."""
        return not may_read(await self._access.of(caller, response.label), response.label)

    async def show(self, caller: Caller, response: StoredResponse) -> StoredResponse:
        """Return a response in the form that this caller may see."""
        if not await self.concerns(caller, response):
            return response
        return response.model_copy(update={"body": empty_body(response.body)})

    async def show_items(self, caller: Caller, conversation_id: str, items: Sequence[Item]) -> list[ItemBody]:
        """Return the bodies of items in the form that this caller may see."""
        withheld = await self.of(caller, conversation_id)
        return [
            empty_item(item.body, with_users=withheld.with_users) if item.response_id in withheld.ids else item.body
            for item in items
        ]

    async def show_input(self, caller: Caller, response: StoredResponse, items: Sequence[ItemBody]) -> list[ItemBody]:
        """Return input items of a response in the form that this caller may see."""
        if not await self.concerns(caller, response):
            return list(items)
        with_users = response.user_id != caller.user_id or await self._is_shared(response.shown_conversation_id)
        return [empty_item(item, with_users=with_users) for item in items]

    async def _is_shared(self, conversation_id: str) -> bool:
        people = await self._conversations.people(conversation_id)
        return people is not None and people.is_shared
