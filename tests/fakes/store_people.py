"""A `PersonStore` of people who have nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence

from backend.retention.domain import Kept, Person, PersonalRows, SoleOwnership
from shared.models.values import JsonObject


class FakePeople:
    """For APIs of which no user is erased; the real stores are tested over both databases."""

    async def sole_ownership(self, person: Person) -> SoleOwnership:
        """Return nothing."""
        return SoleOwnership((), ())

    async def find_running(self, person: Person) -> AsyncIterator[str]:
        """Yield nothing."""
        for each in ():
            yield each

    async def ids(self, kind: Kept, person: Person) -> AsyncIterator[str]:
        """Yield nothing."""
        for each in ():
            yield each

    async def delete_rows(self, kind: PersonalRows, person: Person) -> int:
        """Delete nothing."""
        return 0

    async def delete_usage(self, person: Person) -> tuple[int, int]:
        """Delete nothing."""
        return 0, 0

    async def delete_conversations(self, person: Person) -> int:
        """Delete nothing."""
        return 0

    async def records(self, person: Person) -> AsyncIterator[JsonObject]:
        """Yield nothing."""
        for each in ():
            yield each

    async def find_shared_with(self, person: Person) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    async def bases_of(self, person: Person) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    async def leave_agents(self, person: Person) -> int:
        """Delete nothing."""
        return 0

    async def leave_groups(self, person: Person) -> int:
        """Delete nothing."""
        return 0

    async def groups_of(self, person: Person) -> Sequence[tuple[str, str]]:
        """Return nothing."""
        return ()

    async def agents_of(self, person: Person) -> Mapping[str, str]:
        """Return nothing."""
        return {}
