"""The access of callers to agents: for those who may not use one it does not exist."""

from backend.agents.domain.agent import AgentRole, KnownAgent
from backend.agents.ports.agents import AgentStore
from backend.identity.domain import Caller
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
