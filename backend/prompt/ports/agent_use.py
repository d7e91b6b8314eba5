"""The port to the rights that callers have to agents."""

from collections.abc import Collection
from typing import Protocol

from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller


class AgentUse(Protocol):
    """Tells whether a caller may use an agent, and so may read what it says in prompts."""

    async def usable(self, caller: Caller, refs: Collection[AgentRef]) -> frozenset[AgentRef]:
        """Return those of these agents that are still there and that the caller may use.

        Raises:
            Unavailable: the database is away.
        """
        ...
