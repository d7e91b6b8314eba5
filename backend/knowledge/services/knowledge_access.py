"""Finding a base for a caller: his own membership decides, and a stranger's base is not there."""

from collections.abc import Collection

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Access, Label
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import NotFound


async def find_binding(store: KnowledgeStore, caller: Caller, base_id: str) -> Binding:
    """Return the base and the caller's role in it.

    Raises:
        NotFound: no such base in his tenant, or he is no member.
    """
    found = await store.bindings(caller.tenant, caller.user_id, [base_id])
    if not found:
        raise NotFound("There is no such knowledge base.", param="knowledge_base_id")
    return found[0]


async def access_to(store: KnowledgeStore, caller: Caller, labels: Collection[Label]) -> Access:
    """Return the mode that the caller has today in each of the labelled bases of which he is a member."""
    if not labels:
        return {}
    found = await store.bindings(caller.tenant, caller.user_id, sorted({label.base_id for label in labels}))
    return {binding.base.id: binding.role.access_mode for binding in found}
