"""Deleting all that is a person's."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from backend.agents.services.agents import AgentCatalogue
from backend.conversations.ports.conversations import ConversationStore
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.file_indexes import file_index_of_user
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.retention.domain import Person, PersonalRows, SoleOwnership
from backend.retention.ports import PersonStore
from backend.turns.services.responses import Responses
from shared.errors import Conflict, NotFound, TurnRunning

MOST_NAMED = 50
"""Bases and agents that an error lists, of each."""


class UserErasure:
    """Deletes persons; each step leaves what the same call goes on with, should it be killed.

    `forget_keys` has all processes read API keys again.
    """

    def __init__(
        self,
        people: PersonStore,
        conversations: ConversationStore,
        knowledge: KnowledgeStore,
        agents: AgentCatalogue,
        responses: Responses,
        forget_keys: Callable[[], Awaitable[None]],
    ) -> None:
        self._people = people
        self._conversations = conversations
        self._knowledge = knowledge
        self._agents = agents
        self._responses = responses
        self._forget_keys = forget_keys

    async def remove(self, person: Person, *, with_owned: bool) -> Mapping[str, int]:
        """Stop what runs for a person, delete what is theirs, and return how much this call has deleted of each kind.

        Keys go first, so that nothing new begins with them. Bases and agents without another owner are deleted
        `with_owned` only.

        Raises:
            Conflict: there are such bases or agents, which `with_owned` would delete; nothing was deleted.
            TurnRunning: a turn has not ended in time; the same call goes on.
            Unavailable: the database is away; the same call goes on.
        """
        people, owned = self._people, await self._people.sole_ownership(person)
        if not with_owned and any(owned):
            raise Conflict(_refuse_unowned(owned), param="owned")
        counts = {kind.value: await people.delete_rows(kind, person) for kind in _BEFORE}
        await self._forget_keys()
        counts["stopped_turns"] = await self._stop(person)
        counts["conversations"] = await people.delete_conversations(person)
        counts["responses"] = await people.delete_rows(PersonalRows.RESPONSES, person)
        counts |= await self._leave(person, owned)
        counts["released_results"], counts["restricted_usage"] = await people.delete_usage(person)
        counts |= {kind.value: await people.delete_rows(kind, person) for kind in _AFTER}
        await self._knowledge.delete_base(file_index_of_user(person.tenant, person.user_id).id)
        async for _ in people.find_running(person):
            raise TurnRunning("A turn of this user has not ended yet; send the same request again.", param="user_id")
        return counts

    async def _stop(self, person: Person) -> int:
        stopped = set[str]()
        async for response_id in self._people.find_running(person):
            if response_id not in stopped:
                with suppress(NotFound):
                    await self._responses.cancel(caller_as(person), response_id)
                stopped.add(response_id)
        return len(stopped)

    async def _leave(self, person: Person, owned: SoleOwnership) -> Mapping[str, int]:
        for name in owned.agent_names:
            with suppress(NotFound):
                await self._agents.delete(caller_as(person), name)
        for base_id in owned.base_ids:
            await self._knowledge.delete_base(base_id)
        shared = await self._people.find_shared_with(person)
        left = [await self._conversations.remove_member(each, person.user_id) for each in shared]
        bases = await self._people.bases_of(person)
        left_bases = [await self._knowledge.remove_member(each, person.user_id) for each in bases]
        return {
            "agents": len(owned.agent_names),
            "knowledge_bases": len(owned.base_ids),
            "conversation_memberships": sum(left),
            "knowledge_memberships": sum(left_bases),
            "agent_memberships": await self._people.leave_agents(person),
            "group_memberships": await self._people.leave_groups(person),
        }


_BEFORE = (PersonalRows.API_KEYS, PersonalRows.WAITING_TURNS)
_AFTER = (PersonalRows.FILES, PersonalRows.RESTRICTED_SEARCHES)


def caller_as(person: Person) -> Caller:
    """Return a person as one who calls, with their own rights and no others."""
    return Caller(user_id=person.user_id, tenant=person.tenant, role=KeyRole.USER)


def _refuse_unowned(owned: SoleOwnership) -> str:
    bases, agents = (", ".join(each[:MOST_NAMED]) or "none" for each in owned)
    return (
        "This user is the only owner of some things: give them another owner, or delete them with owned=delete. "
        f"Knowledge bases: {bases}. Agents: {agents}."
    )
