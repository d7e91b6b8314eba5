"""Finding a base for a caller: his own membership decides, and a stranger's base is not there."""

from backend.domain.identity import Caller
from backend.domain.knowledge import Binding
from backend.ports.knowledge import KnowledgeStore
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
