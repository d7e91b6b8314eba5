"""The members of a conversation and their roles."""

from collections.abc import Mapping

from backend.conversations.domain.members import MOST_MEMBERS, ConversationRole
from backend.conversations.ports.conversations import ConversationStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.identity.domain import Caller
from shared.errors import Conflict, NotFound


class ConversationMembers:
    """Members of conversations: they see each other, and only owners change them."""

    def __init__(self, store: ConversationStore, access: ConversationAccess) -> None:
        self._store = store
        self._access = access

    async def all(self, caller: Caller, conversation_id: str) -> Mapping[str, ConversationRole]:
        """Return the members' roles by user id.

        Raises:
            NotFound: the caller is no member.
        """
        return (await self._access.people(caller, conversation_id, ConversationRole.READER)).roles

    async def find(self, caller: Caller, conversation_id: str, user_id: str) -> ConversationRole:
        """Return one member's role.

        Raises:
            NotFound: the caller or the user is no member.
        """
        role = (await self.all(caller, conversation_id)).get(user_id)
        if role is None:
            raise _no_such_member(user_id)
        return role

    async def set(self, caller: Caller, conversation_id: str, user_id: str, role: ConversationRole) -> bool:
        """Add a member or change their role; return whether they are new.

        Raises:
            NotFound: the caller is no member.
            PermissionDenied: the caller is no owner.
            Conflict: the user created the conversation, or it has as many members as it may.
        """
        people = await self._access.people(caller, conversation_id, ConversationRole.OWNER)
        if user_id == people.creator_id:
            if role is ConversationRole.OWNER:
                return False
            raise _creator_stays()
        return await self._store.set_member(conversation_id, user_id, role, MOST_MEMBERS)

    async def remove(self, caller: Caller, conversation_id: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            NotFound: the caller or the user is no member.
            PermissionDenied: the caller is no owner.
            Conflict: the user created the conversation.
        """
        people = await self._access.people(caller, conversation_id, ConversationRole.OWNER)
        if user_id == people.creator_id:
            raise _creator_stays()
        if not await self._store.remove_member(conversation_id, user_id):
            raise _no_such_member(user_id)


def _no_such_member(user_id: str) -> NotFound:
    return NotFound(f"There is no member '{user_id}'; the list of members names those there are.", param="user_id")


def _creator_stays() -> Conflict:
    return Conflict("Who created a conversation stays its owner.", param="user_id")
