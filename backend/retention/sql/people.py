"""All that belongs to a person, in SQL."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Delete, Select, Table, delete, or_, select, update

from backend.agents.sql.tables import agent, agent_member
from backend.conversations.ports.conversations import ConversationStore
from backend.conversations.sql import tables as told
from backend.files.sql import tables as files
from backend.foundation.sql.database import Database
from backend.foundation.sql.row_steps import change_rows
from backend.groups.sql.tables import claimed_groups, group_member, is_anybody, person_group
from backend.identity.sql.tables import api_key
from backend.knowledge.sql.tables import knowledge_base, knowledge_member
from backend.restricted.sql.tables import released_result, restricted_member, restricted_search
from backend.retention.domain import Kept, Person, PersonalRows, SoleOwnership
from backend.retention.sql.personal_records import RECORD_FORMS, USAGE_FORM
from backend.retention.sql.row_pages import look_through, remove_rows
from backend.scim.sql.tables import scim_user
from shared.clock import Clock
from shared.models.values import JsonObject

OWNER = "owner"
"""The role in the rows of members, of bases as of agents."""

_conversation, _response, _file = told.conversation, told.response, files.uploaded_file
_RUNS = _response.c.status.in_(("queued", "in_progress"))
_IS_STORED = _file.c.state == files.STORED


class _Members(NamedTuple):
    """A table of things with members, and that of the members."""

    things: Table
    members: Table
    reference: Column[str]

    def of(self, person: Person) -> ColumnElement[bool]:
        """Select a person's memberships in their tenant."""
        of_tenant = select(self.things.c.id).where(self.things.c.tenant == person.tenant)
        return (self.members.c.user_id == person.user_id) & self.reference.in_(of_tenant)

    def is_sole_owner(self) -> ColumnElement[bool]:
        """Select memberships of owners beside whom there is no other."""
        other = self.members.alias("other")
        referred: ColumnElement[str] = other.c[self.reference.name]
        is_owner = (other.c.role == OWNER) & is_anybody(other.c.user_id)
        is_other = (other.c.user_id != self.members.c.user_id) & is_owner
        return (self.members.c.role == OWNER) & ~select(other.c.user_id).where(
            referred == self.reference, is_other
        ).exists()


_BASES = _Members(knowledge_base, knowledge_member, knowledge_member.c.knowledge_base_id)
_AGENTS = _Members(agent, agent_member, agent_member.c.agent_id)
_COUNTED = _Members(knowledge_base, restricted_member, restricted_member.c.knowledge_base_id)


class SqlPersonStore:
    """The `PersonStore` over a `Database`; what it withdraws of conversations, their own store clears."""

    def __init__(self, database: Database, conversations: ConversationStore, clock: Clock) -> None:
        self._database = database
        self._conversations = conversations
        self._clock = clock

    async def sole_ownership(self, person: Person) -> SoleOwnership:
        """Look through the memberships of one person."""
        return await find_owned_alone(self._database, person)

    async def find_running(self, person: Person) -> AsyncIterator[str]:
        """Look through responses, and through the conversations that are held."""
        async for response_id in self._ids(_response, _is_of(_response, person) & _RUNS):
            yield response_id
        is_held = _is_of(_conversation, person) & _conversation.c.running_response_id.is_not(None)
        async for conversation_id in self._ids(_conversation, is_held):
            query = select(_conversation.c.running_response_id).where(_conversation.c.id == conversation_id)
            for response_id in await self._column(query):
                if response_id is not None:
                    yield response_id

    def ids(self, kind: Kept, person: Person) -> AsyncIterator[str]:
        """Read a page at a time."""
        if kind is Kept.CONVERSATIONS:
            return self._ids(_conversation, _is_of(_conversation, person))
        if kind is Kept.RESPONSES:
            return self._ids(_response, _is_of(_response, person) & ~_RUNS)
        return self._ids(_file, _is_of(_file, person) & _IS_STORED)

    async def delete_rows(self, kind: PersonalRows, person: Person) -> int:
        """Find a page of them, and delete it in short transactions."""
        table, more = _PERSONAL[kind]
        which = _is_of(table, person) & more
        pages, leaving = self._pages(table, which), partial(remove_rows, table, which, self._clock)
        return sum([await change_rows(self._database, some, leaving) async for some in pages])

    async def delete_usage(self, person: Person) -> tuple[int, int]:
        """Delete results by the keys of the searches that made them."""
        pages = self._pages(restricted_search, _is_of(restricted_search, person))
        results = sum([await change_rows(self._database, some, _results_of) async for some in pages])
        counted = delete(restricted_member).where(_COUNTED.of(person))
        return results, await self._database.write(lambda connection: connection.execute(counted).rowcount)

    async def delete_conversations(self, person: Person) -> int:
        """Withdraw each and delete its rows, then those of all that an earlier attempt has withdrawn."""
        which, deleted = _is_of(_conversation, person) & _conversation.c.running_response_id.is_(None), 0
        async for each in self._ids(_conversation, which):
            withdrawn = update(_conversation).where(which, _conversation.c.id == each).values(told.WITHDRAWAL)
            if await self._database.write(lambda c, withdrawn=withdrawn: c.execute(withdrawn).rowcount):
                await self._conversations.clear(each)
                deleted += 1
        for each in await self._conversations.find_left_of_deleted():
            await self._conversations.clear(each)
        return deleted

    async def records(self, person: Person) -> AsyncIterator[JsonObject]:
        """Read each kind at once: such rows are small, and few."""
        counted = USAGE_FORM.query.where(_COUNTED.of(person))
        queries = [(form, form.query.where(_is_of(form.table, person))) for form in RECORD_FORMS]
        for form, query in (*queries, (USAGE_FORM, counted)):
            for row in await self._database.read(lambda c, query=query: c.execute(query).mappings().all()):
                yield form.line({str(name): value for name, value in row.items()})

    async def find_shared_with(self, person: Person) -> tuple[str, ...]:
        """Look for the user's id in the JSON of members."""
        key = orjson.dumps(person.user_id).decode()
        has_role = (_conversation.c.tenant == person.tenant) & _conversation.c.members.contains(key, autoescape=True)
        return tuple([each async for each in self._ids(_conversation, has_role)])

    async def bases_of(self, person: Person) -> Mapping[str, str]:
        """Read the memberships."""
        return await self._roles(select(_BASES.reference, knowledge_member.c.role).where(_BASES.of(person)))

    async def leave_groups(self, person: Person) -> int:
        """Delete what tokens and a directory said of the person, too."""
        said = delete(claimed_groups).where(_is_of(claimed_groups, person))
        known = delete(scim_user).where(_is_of(scim_user, person))
        left = delete(group_member).where(_is_of(group_member, person))
        for each in (said, known):
            await self._database.write(lambda connection, each=each: connection.execute(each))
        return await self._database.write(lambda connection: connection.execute(left).rowcount)

    async def groups_of(self, person: Person) -> Sequence[tuple[str, str]]:
        """Read the ids and names."""
        named = select(person_group.c.id, person_group.c.name).join(
            group_member, group_member.c.group_id == person_group.c.id
        )
        found = await self._database.read(lambda c: c.execute(named.where(_is_of(group_member, person))).all())
        return sorted((str(group_id), str(name)) for group_id, name in found)

    async def leave_agents(self, person: Person) -> int:
        """Delete the memberships, which are few; the agents are locked, so that no two owners leave one at once."""
        theirs = select(agent_member.c.agent_id).where(_AGENTS.of(person))
        held = select(agent.c.id).where(agent.c.id.in_(theirs)).order_by(agent.c.id).with_for_update()
        left = delete(agent_member).where(_AGENTS.of(person), ~_AGENTS.is_sole_owner())

        def work(connection: Connection) -> int:
            connection.execute(held).all()
            return connection.execute(left).rowcount

        return await self._database.write(work)

    async def agents_of(self, person: Person) -> Mapping[str, str]:
        """Read the memberships."""
        named = select(agent.c.name, agent_member.c.role).join(agent_member, agent_member.c.agent_id == agent.c.id)
        return await self._roles(named.where(_AGENTS.of(person)))

    async def _roles(self, query: Select[Any, Any]) -> Mapping[str, str]:
        found = await self._database.read(lambda connection: connection.execute(query).all())
        return {str(name): str(role) for name, role in sorted(found)}

    async def _column(self, query: Select[Any]) -> tuple[Any, ...]:
        return tuple(await self._database.read(lambda connection: connection.execute(query).scalars().all()))

    async def _ids(self, table: Table, which: ColumnElement[bool]) -> AsyncIterator[str]:
        async for found in self._pages(table, which):
            for each in found:
                yield each

    async def _pages(self, table: Table, which: ColumnElement[bool]) -> AsyncIterator[Sequence[str]]:
        """Yield ids in their order; no statement looks at more than a page of rows."""
        last: str | None = ""
        while last is not None:
            found, last = await self._database.read(partial(look_through, table, which, last))
            yield found


async def find_owned_alone(database: Database, person: Person) -> SoleOwnership:
    """Find what a person, or what stands for a group (`name_group`), owns alone."""
    bases = select(_BASES.reference).where(_BASES.of(person), _BASES.is_sole_owner())
    named = select(agent.c.name).join(agent_member, agent_member.c.agent_id == agent.c.id)
    queries = (bases, named.where(_AGENTS.of(person), _AGENTS.is_sole_owner()))
    found = [await database.read(lambda c, query=query: c.execute(query).scalars().all()) for query in queries]
    return SoleOwnership(tuple(found[0]), tuple(found[1]))


def _results_of(search_ids: Sequence[str]) -> Delete:
    keys = select(restricted_search.c.cache_key).where(restricted_search.c.id.in_(search_ids))
    return delete(released_result).where(released_result.c.cache_key.in_(keys))


def _is_of(table: Table, person: Person) -> ColumnElement[bool]:
    return (table.c.tenant == person.tenant) & (table.c.user_id == person.user_id)


_PERSONAL: dict[PersonalRows, tuple[Table, ColumnElement[bool]]] = {
    PersonalRows.API_KEYS: (api_key, or_(api_key.c.origin.is_(None), api_key.c.origin == "issued")),
    PersonalRows.WAITING_TURNS: (told.waiting_turn, told.waiting_turn.c.id != ""),
    PersonalRows.RESPONSES: (_response, ~_RUNS),
    PersonalRows.FILES: (_file, _IS_STORED),
    PersonalRows.RESTRICTED_SEARCHES: (restricted_search, restricted_search.c.id != ""),
}
