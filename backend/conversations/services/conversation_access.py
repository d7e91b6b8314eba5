"""The access of callers to conversations and responses: for others than its members neither exists."""

from backend.conversations.domain.members import ConversationRole, People, check_role
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.identity.domain import Caller
from shared.errors import NotFound


class ConversationAccess:
    """Decides by the members of a conversation who may use it and its responses."""

    def __init__(self, conversations: ConversationStore, turns: TurnStore) -> None:
        self._conversations = conversations
        self._turns = turns

    async def people(self, caller: Caller, conversation_id: str, needed: ConversationRole) -> People:
        """Return the people of a conversation that the caller may use so far.

        Raises:
            NotFound: there is no such conversation, or the caller is no member; the error is the same for both.
            PermissionDenied: the caller's role does not go so far.
        """
        found = await self._conversations.people(conversation_id)
        role = found.role_of(caller) if found is not None else None
        missing = NotFound(f"There is no conversation '{conversation_id}'.", param="conversation_id")
        check_role(role, needed, missing)
        return found or People(tenant=caller.tenant, creator_id=caller.user_id)

    async def may_read(self, caller: Caller, response: StoredResponse) -> bool:
        """Return whether the caller may read a response now; one without its conversation is its asker's."""
        return await self._role(caller, response) is not None

    async def response(
        self, caller: Caller, response_id: str, needed: ConversationRole, param: str = "response_id"
    ) -> StoredResponse:
        """Return a response that the caller may use so far; one whose conversation was deleted is its asker's.

        Raises:
            NotFound: there is no such response, or the caller is no member; the error is the same for both.
            PermissionDenied: the caller's role does not go so far.
        """
        found = await self._turns.find(response_id)
        missing = NotFound(f"There is no response '{response_id}'.", param=param)
        if found is None:
            raise missing
        check_role(await self._role(caller, found), needed, missing)
        return found

    async def _role(self, caller: Caller, response: StoredResponse) -> ConversationRole | None:
        people = await self._conversations.people(response.shown_conversation_id)
        asker = People(tenant=response.tenant, creator_id=response.user_id)
        return (people or asker).role_of(caller)
