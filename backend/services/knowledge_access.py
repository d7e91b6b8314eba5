"""Finding a base for a caller: his own membership decides, and a stranger's base is not there."""

from collections.abc import Collection

from backend.domain.identity import Caller
from backend.domain.knowledge import Binding
from backend.ports.knowledge import KnowledgeStore
from shared.errors import NotFound
from shared.models.execution import AccessMode


async def find_binding(store: KnowledgeStore, caller: Caller, base_id: str) -> Binding:
    """Return the base and the caller's role in it.

    Raises:
        NotFound: no such base in his tenant, or he is no member.
    """
    found = await store.bindings(caller.tenant, caller.user_id, [base_id])
    if not found:
        raise NotFound("There is no such knowledge base.", param="knowledge_base_id")
    return found[0]


async def readable_bases(store: KnowledgeStore, caller: Caller, base_ids: Collection[str]) -> frozenset[str]:
    """Return those of the bases whose text the caller may read today."""
    if not base_ids:
        return frozenset()
    found = await store.bindings(caller.tenant, caller.user_id, sorted(base_ids))
    return frozenset(binding.base.id for binding in found if binding.role.access_mode is AccessMode.FULL)
