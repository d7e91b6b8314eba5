"""The ports of retention."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from backend.retention.domain import DuePage, Kept, Person, PersonalRows, SoleOwnership
from shared.models.values import JsonObject


class ExpiryStore(Protocol):
    """Finds what nobody has touched since an instant, and deletes it in short transactions.

    Raises (every call):
        Unavailable: the database is away. Retryable.
    """

    async def due(self, kind: Kept, before: datetime, after: str) -> DuePage:
        """Look at a bounded number of things with ids behind `after`."""
        ...

    async def delete(self, kind: Kept, ids: Sequence[str], before: datetime) -> int:
        """Delete those of the named things that still are due; return how many were deleted.

        A process that is killed meanwhile leaves what `due` finds again.
        """
        ...


class RetentionObserver(Protocol):
    """Is told of sweeps."""

    def swept(self, deleted: Mapping[Kept, int]) -> None:
        """Note how many things of each kind a sweep has deleted."""
        ...


class PersonStore(Protocol):
    """What is a person's. Everything is read and deleted in short steps, and may be asked for again after a kill.

    Raises (every call):
        Unavailable: the database is away. Retryable.
    """

    async def sole_ownership(self, person: Person) -> SoleOwnership:
        """Return what would be left without an owner."""
        ...

    def find_running(self, person: Person) -> AsyncIterator[str]:
        """Yield the responses of turns that run for a person or on their conversations."""
        ...

    def ids(self, kind: Kept, person: Person) -> AsyncIterator[str]:
        """Yield the ids of what a person has made, in their order; of responses the ended ones."""
        ...

    async def delete_rows(self, kind: PersonalRows, person: Person) -> int:
        """Delete what is a person's; keys of the operator's settings and turns that run stay."""
        ...

    async def delete_usage(self, person: Person) -> tuple[int, int]:
        """Delete the results of a person's restricted searches, while these are there, and the usage of bases.

        Return how many of each were deleted.
        """
        ...

    async def delete_conversations(self, person: Person) -> int:
        """Delete a person's conversations on which no turn runs, and finish what other deletions have left."""
        ...

    def records(self, person: Person) -> AsyncIterator[JsonObject]:
        """Yield what is kept of a person beside their texts, each with a `type`: keys, turns that wait, searches …"""
        ...

    async def find_shared_with(self, person: Person) -> tuple[str, ...]:
        """Return the conversations of others in which a person has a role."""
        ...

    async def bases_of(self, person: Person) -> Mapping[str, str]:
        """Return a person's roles in bases, by the id of the base."""
        ...

    async def leave_agents(self, person: Person) -> int:
        """Take a person from all agents of which they are not the only owner."""
        ...

    async def leave_groups(self, person: Person) -> int:
        """Take a person from all groups; return how many those were."""
        ...

    async def groups_of(self, person: Person) -> Sequence[tuple[str, str]]:
        """Return the ids and names of a person's groups."""
        ...

    async def agents_of(self, person: Person) -> Mapping[str, str]:
        """Return a person's roles in agents, by the name of the agent."""
        ...
