"""The access of callers to bases: their membership decides, and for others a base does not exist."""

from collections.abc import Collection

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Access, Label
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import NotFound


async def find_binding(store: KnowledgeStore, caller: Caller, base_id: str) -> Binding:
    """Return the base and the caller's role in it.

    Raises:
        NotFound: there is no such base in the caller's tenant, or the caller is not a member.
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
