"""Creating, replacing, listing and deleting agents."""

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole, KnownAgent
from backend.agents.ports.agents import AgentStore
from backend.agents.services.agent_access import find_agent, no_such_agent, require_agent_owner
from backend.agents.services.agent_files import AgentFiles
from backend.identity.domain import Caller
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.openai_api.domain.client_tools import check_functions
from backend.openai_api.domain.turn_request import check_search_filters
from backend.turns.services.request.model_names import ModelNames, listed
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
        known = next(iter(await self._store.find(caller.tenant, caller.user_id, [name])), None)
        _require_edit(known)
        await self._check(caller, name, definition, known)
        if known is None:
            return await self._create(caller, name, definition), True
        # What a process that ends in between has taken away too early, the next turn of the agent puts back.
        await self._files.withdraw(known.agent, definition.file_ids)
        if not await self._store.replace(known.agent.id, definition):
            raise Conflict("Somebody else has just deleted this agent; send the request again.", param="name")
        agent = known.agent.model_copy(update={"definition": definition})
        await self._files.read(agent)
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
        await self._files.read(agent)
        return KnownAgent(agent=agent, role=AgentRole.OWNER)

    async def _check(self, caller: Caller, name: str, definition: AgentDefinition, known: KnownAgent | None) -> None:
        check_functions(definition.tools)
        check_search_filters(definition.tools)
        await self._tools.check_agent(definition.tools, definition.skills)
        names = [card.name for card in await self._models.cards()]
        if name in names and known is None:
            raise InvalidRequest(f"'{name}' is the name of a model; take another one.", param="name")
        if definition.model is not None and definition.model not in names:
            message = f"The model '{definition.model}' is not offered; use one of {listed(names)}."
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
