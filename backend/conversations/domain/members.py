"""Members of a conversation, their roles, and what each role may do."""

from enum import StrEnum
from typing import NamedTuple

from backend.identity.domain import Caller
from shared.errors import BallastError, PermissionDenied

MOST_MEMBERS = 100
"""How many people a conversation can be shared with."""


class ConversationRole(StrEnum):
    """What a member may do: a reader reads, a writer also runs turns and adds items, an owner does everything."""

    OWNER = "owner"
    WRITER = "writer"
    READER = "reader"

    def covers(self, needed: "ConversationRole") -> bool:
        """Say whether this role allows what the other one is needed for."""
        return _RANKS[self] >= _RANKS[needed]


_RANKS = {ConversationRole.READER: 0, ConversationRole.WRITER: 1, ConversationRole.OWNER: 2}


class People(NamedTuple):
    """The people of a conversation: who created it owns it for good; `others` is None until they share it.

    Once shared it stays so: `others` is empty where all of them have been removed.
    """

    tenant: str
    creator_id: str
    others: dict[str, ConversationRole] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether messages in it may be somebody else's than the reader's."""
        return self.others is not None

    def author_of(self, user_id: str) -> str | None:
        """Return the author named beside a user's messages; None where all are the reader's own."""
        return user_id if self.is_shared else None

    @property
    def roles(self) -> dict[str, ConversationRole]:
        """The roles of all members by user id, in the order of the ids."""
        return dict(sorted({**(self.others or {}), self.creator_id: ConversationRole.OWNER}.items()))

    def role_of(self, caller: Caller) -> ConversationRole | None:
        """Return the role of a caller; None for anybody who is not a member."""
        return self.roles.get(caller.user_id) if caller.tenant == self.tenant else None

    def allows(self, caller: Caller, needed: ConversationRole) -> bool:
        """Say whether a caller may do what a role is needed for."""
        role = self.role_of(caller)
        return role is not None and role.covers(needed)


def check_role(role: ConversationRole | None, needed: ConversationRole, missing: BallastError) -> None:
    """Check that a role allows what another one is needed for: the one rule for conversations and their responses.

    Raises:
        BallastError: there is no role; `missing` says that there is no such object.
        PermissionDenied: the role does not go so far.
    """
    if role is None:
        raise missing
    if not role.covers(needed):
        raise PermissionDenied(f"This takes the role '{needed}' in the conversation, and yours is '{role}'.")
