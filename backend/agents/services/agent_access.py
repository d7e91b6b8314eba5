"""The access of callers to agents: for those who may not use one it does not exist."""

from collections.abc import Sequence

from backend.agents.domain.agent import AgentRole, KnownAgent
from backend.agents.ports.agents import AgentStore
from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START
from shared.errors import NotFound, PermissionDenied


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
