"""Agents: create, replace, list and delete them, who may use them, their members, and their presets for turns."""

from collections.abc import Collection, Mapping, Sequence

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole, KnownAgent, preset_of
from backend.agents.ports.agents import AgentStore
from backend.agents.services.agent_files import AgentFiles
from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.openai_api.domain.client_tools import check_functions
from backend.openai_api.domain.presets import Preset
from backend.openai_api.domain.turn_request import check_search_filters
from backend.turns.ports.presets import OfferedPreset
from backend.turns.services.request.model_names import ModelNames, list_names
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from shared.clock import Clock
from shared.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from shared.ids import IdPrefix, new_id

MAX_AGENTS = 1_000
"""In a tenant: a user's list of models names all that they may use."""


class AgentCatalogue:
    """The agents of a caller."""

    def __init__(
        self,
        store: AgentStore,
        knowledge: KnowledgeStore,
        models: ModelNames,
        tools: ToolCatalogue,
        files: AgentFiles,
        clock: Clock,
    ) -> None:
        self._store = store
        self._files = files
        self._knowledge = knowledge
        self._models = models
        self._tools = tools
        self._clock = clock

    async def put(self, caller: Caller, name: str, definition: AgentDefinition) -> tuple[KnownAgent, bool]:
        """Create an agent that the caller owns, or replace one that they may edit; return whether it is new.

        Raises:
            InvalidRequest: the name is that of a model, the model, a tool server, its tool or a skill is not offered,
                a function or a file is named twice, or a file is not the caller's.
            NotFound: a base does not exist for the caller, or the name is that of an agent that they may not use.
            PermissionDenied: the caller may use the agent, but not edit it.
            Conflict: the tenant has as many agents as one may have, or somebody else has just created this one.
        """
        while True:
            known = await self._find(caller, name)
            _require_edit(known)
            await self._check(caller, name, definition, known)
            if known is None:
                return await self._create(caller, name, definition), True
            # What a process that ends in between has taken away too early, the next turn of the agent puts back.
            await self._files.withdraw(known.agent, definition.file_ids)
            # What an agent has may be kept without a right to it: another change in between is looked at first.
            if await self._store.replace(known.agent.id, definition, known.agent.definition):
                break
        agent = known.agent.model_copy(update={"definition": definition})
        await self._read_files(caller, agent, known.agent)
        return KnownAgent(agent=agent, role=known.role), False

    async def find(self, caller: Caller, name: str) -> KnownAgent:
        """Return an agent; those who may not edit it see only those of its bases that are theirs.

        Raises:
            NotFound: there is none that the caller may use.
        """
        return (await self._show(caller, (await find_agent(self._store, caller, name),)))[0]

    async def page(
        self, caller: Caller, *, after: str | None, limit: int, descending: bool
    ) -> tuple[tuple[KnownAgent, ...], bool]:
        """Return up to `limit` agents that the caller may use, by age and name, and whether there are more.

        Raises:
            NotFound: `after` is the name of none of them.
        """
        entries = await self._store.usable(caller.tenant, caller.user_id)
        ordered = sorted(entries, key=lambda entry: (entry.created_at, entry.name), reverse=descending)
        names = [entry.name for entry in ordered]
        if after is not None and after not in names:
            raise no_such_agent(after, param="after")
        start = names.index(after) + 1 if after is not None else 0
        page = names[start : start + limit]
        found = {each.agent.name: each for each in await self._store.find(caller.tenant, caller.user_id, page)}
        usable = [found[name] for name in page if name in found and found[name].is_usable]
        return await self._show(caller, tuple(usable)), len(names) > start + limit

    async def delete(self, caller: Caller, name: str) -> None:
        """Delete an agent.

        Raises:
            NotFound: there is none that the caller may use.
            PermissionDenied: the caller is no owner.
        """
        known = await find_agent(self._store, caller, name)
        require_agent_owner(known)
        await self._store.delete(known.agent.id)
        await self._files.clear(known.agent)

    async def _create(self, caller: Caller, name: str, definition: AgentDefinition) -> KnownAgent:
        agent = Agent(
            id=new_id(IdPrefix.AGENT),
            tenant=caller.tenant,
            name=name,
            created_at=self._clock.now(),
            definition=definition,
        )
        if not await self._store.create(agent, caller.user_id, MAX_AGENTS):
            raise Conflict("Somebody else has just created an agent of this name; take another one.", param="name")
        await self._read_files(caller, agent)
        return KnownAgent(agent=agent, role=AgentRole.OWNER)

    async def _find(self, caller: Caller, name: str) -> KnownAgent | None:
        return next(iter(await self._store.find(caller.tenant, caller.user_id, [name])), None)

    async def _read_files(self, caller: Caller, agent: Agent, before: Agent | None = None) -> None:
        """Have the files of an agent read, and take away again what another change has just taken from it."""
        await self._files.read(agent)
        if agent.definition.file_ids or (before is not None and before.definition.file_ids):
            now = await self._find(caller, agent.name)
            is_there = now is not None and now.agent.id == agent.id
            await self._files.settle(agent, now.agent.definition.file_ids if now is not None and is_there else None)

    async def _check(self, caller: Caller, name: str, definition: AgentDefinition, known: KnownAgent | None) -> None:
        check_functions(definition.tools)
        check_search_filters(definition.tools)
        await self._tools.check_agent(definition.tools, definition.skills)
        names = [card.name for card in await self._models.cards()]
        if name in names and known is None:
            raise InvalidRequest(f"'{name}' is the name of a model; take another one.", param="name")
        if definition.model is not None and definition.model not in names:
            message = f"The model '{definition.model}' is not offered; use one of {list_names(names)}."
            raise InvalidRequest(message, param="model")
        await self._files.check(caller, definition, known.agent.definition.file_ids if known is not None else ())
        kept = known.agent.definition.base_ids if known is not None else ()
        paths = definition.base_paths
        added = [base_id for base_id in paths if base_id not in kept]
        mine = await self._mine(caller, added)
        for base_id in added:
            if base_id not in mine:
                message = f"There is no knowledge base '{base_id}'; name bases that you are a member of."
                raise NotFound(message, param=paths[base_id])

    async def _show(self, caller: Caller, found: tuple[KnownAgent, ...]) -> tuple[KnownAgent, ...]:
        named = {base_id for each in found if not each.may_edit for base_id in each.agent.definition.base_ids}
        mine = await self._mine(caller, sorted(named))
        return tuple(each if each.may_edit else _narrow(each, mine) for each in found)

    async def _mine(self, caller: Caller, base_ids: list[str]) -> frozenset[str]:
        if not base_ids:
            return frozenset()
        bindings = await self._knowledge.bindings(caller.tenant, caller.user_id, base_ids)
        return frozenset(binding.base.id for binding in bindings)


def _require_edit(known: KnownAgent | None) -> None:
    if known is None or known.may_edit:
        return
    if not known.is_usable:
        raise NotFound("This name cannot be used; take another one.", param="name")
    raise PermissionDenied("Only owners and editors may change this agent.")


def _narrow(known: KnownAgent, base_ids: frozenset[str]) -> KnownAgent:
    definition = known.agent.definition.among(base_ids)
    return known.model_copy(update={"agent": known.agent.model_copy(update={"definition": definition})})


async def find_agent(store: AgentStore, caller: Caller, name: str) -> KnownAgent:
    """Return an agent and the caller's role.

    Raises:
        NotFound: the caller's tenant has no such agent, or the caller may not use it.
    """
    found = next(iter(await store.find(caller.tenant, caller.user_id, [name])), None)
    if found is None or not found.is_usable:
        raise no_such_agent(name)
    return found


async def open_agent_files(
    store: AgentStore, tenant: str, user_id: str, file_index_ids: Sequence[str]
) -> frozenset[str]:
    """Return those of the file indexes whose agent the user may use now: a user of an agent may search its files."""
    agents = {file_index_id.removeprefix(FILE_INDEX_ID_START): file_index_id for file_index_id in file_index_ids}
    usable = await store.usable_among(tenant, user_id, sorted(agents))
    return frozenset(agents[agent_id] for agent_id in usable)


def require_agent_owner(known: KnownAgent) -> None:
    """Require the role that may change members and delete the agent.

    Raises:
        PermissionDenied: the caller is no owner.
    """
    if known.role is not AgentRole.OWNER:
        raise PermissionDenied("Only owners may do this.")


def no_such_agent(name: str, *, param: str = "name") -> NotFound:
    """Return the error for an agent that does not exist for the caller."""
    return NotFound(f"There is no agent '{name}'; GET /v1/agents lists those that you may use.", param=param)


class AgentMembers:
    """Members of agents: they see each other, and only owners change them."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def all(self, caller: Caller, name: str) -> Mapping[str, AgentRole]:
        """Return the members' roles by user id, or by what stands for a group (`name_group`).

        Raises:
            NotFound: the caller may not use the agent.
            PermissionDenied: the caller uses it without being a member.
        """
        known = await find_agent(self._store, caller, name)
        if known.role is None:
            raise PermissionDenied("Only members of this agent see its members.")
        return await self._store.members(known.agent.id)

    async def find(self, caller: Caller, name: str, user_id: str) -> AgentRole:
        """Return one member's role.

        Raises:
            NotFound: the caller may not use the agent, or the user is no member.
            PermissionDenied: the caller uses it without being a member.
        """
        role = (await self.all(caller, name)).get(user_id)
        if role is None:
            raise _no_such_member(user_id)
        return role

    async def set(self, caller: Caller, name: str, user_id: str, role: AgentRole) -> bool:
        """Add a member or change their role; return whether they are new.

        Raises:
            NotFound: the caller may not use the agent.
            PermissionDenied: the caller is no owner.
            Conflict: no owner would be left.
        """
        known = await find_agent(self._store, caller, name)
        require_agent_owner(known)
        return await self._store.set_member(known.agent.id, user_id, role)

    async def remove(self, caller: Caller, name: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            NotFound: the caller may not use the agent, or the user is no member.
            PermissionDenied: the caller is no owner.
            Conflict: no owner would be left.
        """
        known = await find_agent(self._store, caller, name)
        require_agent_owner(known)
        if not await self._store.remove_member(known.agent.id, user_id):
            raise _no_such_member(user_id)


def _no_such_member(user_id: str) -> NotFound:
    return NotFound(f"There is no member '{user_id}'; the list of members names those there are.", param="user_id")


class AgentPresets:
    """Implements `PresetSource` with stored agents."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def find(self, caller: Caller, name: str) -> Preset | None:
        """Return what an agent stands for, None where there is none that the caller may use."""
        found = next(iter(await self._store.find(caller.tenant, caller.user_id, [name])), None)
        return preset_of(found.agent) if found is not None and found.is_usable else None

    async def usable(self, caller: Caller, refs: Collection[AgentRef]) -> frozenset[AgentRef]:
        """Return those of these agents that are still there and that the caller may use."""
        found = await self._store.find(caller.tenant, caller.user_id, sorted({ref.name for ref in refs}))
        ids = {each.agent.id for each in found if each.is_usable}
        return frozenset(ref for ref in refs if ref.id in ids)

    async def list_offered(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        """Return the agents that the caller may use, by name."""
        entries = await self._store.usable(caller.tenant, caller.user_id)
        return tuple(OfferedPreset(entry.name, int(entry.created_at.timestamp())) for entry in entries)
