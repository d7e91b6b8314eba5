"""Which turns of a conversation its owner may not read any more, judged by today's memberships."""

from collections.abc import Sequence

from backend.conversations.domain.responses import Item, ItemBody, StoredResponse
from backend.conversations.domain.withheld import emptied_body, emptied_item
from backend.conversations.ports.conversations import ConversationStore
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import Label, may_read
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import access_to


class WithheldText:
    """Replaces stored text that came from knowledge by notices, for readers who have lost access to that knowledge."""

    def __init__(self, conversations: ConversationStore, knowledge: KnowledgeStore) -> None:
        self._conversations = conversations
        self._knowledge = knowledge

    async def of(self, caller: Caller, conversation_id: str) -> frozenset[str]:
        """Return the ids of the turns that are withheld from this caller."""
        labels = await self._conversations.labels(conversation_id)
        access = await access_to(self._knowledge, caller, frozenset[Label]().union(*labels.values()))
        return frozenset(turn_id for turn_id, label in labels.items() if not may_read(access, label))

    async def concerns(self, caller: Caller, response: StoredResponse) -> bool:
        """Whether a response is withheld, one that still runs too."""
        return not may_read(await access_to(self._knowledge, caller, response.label), response.label)

    async def shown(self, caller: Caller, response: StoredResponse) -> StoredResponse:
        """Return a response as this caller may see it."""
        if not await self.concerns(caller, response):
            return response
        return response.model_copy(update={"body": emptied_body(response.body)})

    async def shown_items(self, caller: Caller, conversation_id: str, items: Sequence[Item]) -> list[ItemBody]:
        """Return items as this caller may see them."""
        withheld = await self.of(caller, conversation_id)
        return [emptied_item(item.body) if item.response_id in withheld else item.body for item in items]
