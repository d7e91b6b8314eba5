"""Agents and their members in SQL."""

from collections.abc import Mapping, Sequence

import orjson
from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, text, update

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole, KnownAgent
from backend.agents.ports.agents import AgentEntry
from backend.agents.sql import tables
from backend.foundation.sql.database import Database
from backend.foundation.sql.named_locks import lock_name
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Row, Statement
from backend.groups.sql.tables import in_groups, is_anybody
from shared.errors import Conflict, CorruptRecord, NotFound

_agent, _member = tables.agent, tables.agent_member
_is_agent = _agent.c.id == bindparam("where_id")
_is_of_agent = _member.c.agent_id == bindparam("where_id")
_is_user = (_member.c.user_id == bindparam("user_id")) | in_groups(_member.c.user_id)
_is_of_user = (_member.c.agent_id == _agent.c.id) & _is_user
_is_of_tenant = _agent.c.tenant == bindparam("tenant")
_is_usable = (_agent.c.visibility == "tenant") | _member.c.role.is_not(None)

_FIND = (
    select(_agent, _member.c.role)
    .outerjoin_from(_agent, _member, _is_of_user)
    .where(_is_of_tenant, _agent.c.name.in_(bindparam("names", expanding=True)))
)
_USABLE = Statement(
    select(_agent.c.name, _agent.c.created_at)
    .outerjoin_from(_agent, _member, _is_of_user)
    .where(_is_of_tenant, _is_usable)
)
_USABLE_AMONG = (
    select(_agent.c.id)
    .outerjoin_from(_agent, _member, _is_of_user)
    .where(_is_of_tenant, _is_usable, _agent.c.id.in_(bindparam("ids", expanding=True)))
)
_COUNT = Statement(select(func.count().label("agents")).select_from(_agent).where(_is_of_tenant))
# A second transaction with the same name waits for the first one, and then inserts no row.
_INSERT = Statement(
    text("""
        INSERT INTO agent (id, tenant, name, visibility, definition, created_at)
        VALUES (:id, :tenant, :name, :visibility, :definition, :created_at)
        ON CONFLICT (tenant, name) DO NOTHING
    """).bindparams(bindparam("created_at", type_=Instant))
)
_REPLACE = Statement(update(_agent).where(_is_agent))
_DELETE = Statement(delete(_agent).where(_is_agent))
_HOLD = Statement(select(_agent.c.id, _agent.c.definition).where(_is_agent).with_for_update())
_MEMBERS = Statement(select(_member.c.user_id, _member.c.role).where(_is_of_agent))
_OWNERS = Statement(
    select(_member.c.user_id).where(
        _is_of_agent, _member.c.role == AgentRole.OWNER.value, is_anybody(_member.c.user_id)
    )
)
_INSERT_MEMBER = Statement(insert(_member))
_DELETE_MEMBER = Statement(delete(_member).where(_is_of_agent, _member.c.user_id == bindparam("where_user_id")))


class SqlAgentStore:
    """The `AgentStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, tenant: str, user_id: str, names: Sequence[str]) -> tuple[KnownAgent, ...]:
        """Return those of a tenant's agents, by name, with the user's role."""
        which = {"tenant": tenant, "user_id": user_id, "names": list(names)}
        rows = await self._database.read(lambda connection: connection.execute(_FIND, which).mappings().all())
        by_name: dict[str, list[KnownAgent]] = {}
        for known in map(_to_known, rows):
            by_name.setdefault(known.agent.name, []).append(known)
        return tuple(_join_ways(by_name[name]) for name in sorted(by_name))

    async def usable(self, tenant: str, user_id: str) -> tuple[AgentEntry, ...]:
        """Return the agents that a user may use, by name."""
        who = {"tenant": tenant, "user_id": user_id}
        rows = await self._database.read(lambda connection: _USABLE.rows(connection, who))
        return tuple(sorted({AgentEntry(row["name"], row["created_at"]) for row in rows}))

    async def usable_among(self, tenant: str, user_id: str, agent_ids: Sequence[str]) -> frozenset[str]:
        """Return those of the agents, by id, that a user may use."""
        which = {"tenant": tenant, "user_id": user_id, "ids": list(agent_ids)}
        found = await self._database.read(lambda connection: connection.execute(_USABLE_AMONG, which).scalars().all())
        return frozenset(found)

    async def create(self, agent: Agent, owner_id: str, most: int) -> bool:
        """Store an agent and its first owner; return False where the name is taken."""
        row = {**agent.model_dump(exclude={"definition"}), **_definition_columns(agent.definition)}

        def work(connection: Connection) -> bool:
            lock_name(connection, f"agents/{agent.tenant}")
            counted = _COUNT.first(connection, {"tenant": agent.tenant})
            if counted is not None and counted["agents"] >= most:
                raise Conflict(f"This tenant has {most} agents, which is the most; delete one first.", param="name")
            if not _INSERT.change(connection, row):
                return False
            _INSERT_MEMBER.change(connection, _member_row(agent.id, owner_id, AgentRole.OWNER))
            return True

        return await self._database.write(work)

    async def replace(self, agent_id: str, definition: AgentDefinition, instead_of: AgentDefinition) -> bool:
        """Replace what an agent consists of, as long as it is what was read."""
        change = {"where_id": agent_id, **_definition_columns(definition)}

        def work(connection: Connection) -> bool:
            held = _HOLD.first(connection, {"where_id": agent_id})
            is_as_read = held is not None and _read_definition(held) == instead_of
            return is_as_read and bool(_REPLACE.change(connection, change))

        return await self._database.write(work)

    async def delete(self, agent_id: str) -> None:
        """Delete an agent with its members."""
        await self._database.write(lambda connection: _DELETE.change(connection, {"where_id": agent_id}))

    async def members(self, agent_id: str) -> Mapping[str, AgentRole]:
        """Return roles by user id, and by what stands for groups."""
        return await self._database.read(lambda connection: _read_members(connection, agent_id))

    async def set_member(self, agent_id: str, user_id: str, role: AgentRole) -> bool:
        """Add a member or change their role; return whether they are new."""

        def work(connection: Connection) -> bool:
            _hold(connection, agent_id)
            was_member = _DELETE_MEMBER.change(connection, {"where_id": agent_id, "where_user_id": user_id})
            _INSERT_MEMBER.change(connection, _member_row(agent_id, user_id, role))
            _require_owner(connection, agent_id)
            return not was_member

        return await self._database.write(work)

    async def remove_member(self, agent_id: str, user_id: str) -> bool:
        """Remove a member; False when there was none."""

        def work(connection: Connection) -> bool:
            _hold(connection, agent_id)
            was_member = bool(_DELETE_MEMBER.change(connection, {"where_id": agent_id, "where_user_id": user_id}))
            if was_member:
                _require_owner(connection, agent_id)
            return was_member

        return await self._database.write(work)


def _hold(connection: Connection, agent_id: str) -> None:
    """Lock an agent, so that two owners cannot remove each other."""
    if _HOLD.first(connection, {"where_id": agent_id}) is None:
        raise NotFound("The agent was deleted meanwhile.", param="name")


def _read_members(connection: Connection, agent_id: str) -> Mapping[str, AgentRole]:
    rows = _MEMBERS.rows(connection, {"where_id": agent_id})
    return dict(sorted((row["user_id"], _to_role(row["role"])) for row in rows))


def _require_owner(connection: Connection, agent_id: str) -> None:
    """Undo what was done where nobody owns the agent any more; a group without anybody in it is nobody."""
    if _OWNERS.first(connection, {"where_id": agent_id}) is None:
        raise Conflict("An agent keeps at least one owner.", param="role")


def _join_ways(ways: Sequence[KnownAgent]) -> KnownAgent:
    """Return an agent with the strictest role of those by which it was found."""
    return min(ways, key=lambda known: known.role.rights if known.role is not None else 0)


def _member_row(agent_id: str, user_id: str, role: AgentRole) -> dict[str, object]:
    return {"agent_id": agent_id, "user_id": user_id, "role": role.value}


def _definition_columns(definition: AgentDefinition) -> dict[str, object]:
    return {
        "visibility": definition.visibility,
        "definition": definition.model_dump_json(by_alias=True, exclude_none=True),
    }


def _to_role(stored: str) -> AgentRole:
    """Read a role; a role that this release does not know becomes the one with the fewest rights."""
    try:
        return AgentRole(stored)
    except ValueError:
        return AgentRole.READER


def _read_definition(row: Row | RowMapping) -> AgentDefinition:
    """Read what an agent consists of; fields that a later release has added to it have no effect in this one."""
    stored = orjson.loads(row["definition"])
    known = {name: value for name, value in stored.items() if name in AgentDefinition.model_fields}
    return AgentDefinition.model_validate(known)


def _to_known(row: Row | RowMapping) -> KnownAgent:
    try:
        agent = Agent(
            id=row["id"],
            tenant=row["tenant"],
            name=row["name"],
            created_at=row["created_at"],
            definition=_read_definition(row),
        )
    except ValueError as error:
        raise CorruptRecord(f"Agent {row['id']} cannot be read.") from error
    return KnownAgent(agent=agent, role=_to_role(row["role"]) if row["role"] is not None else None)
