"""The access of callers to vector stores, which are knowledge bases under the same roles."""

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import NotFound

NO_STORE = "There is no such vector store."


async def find_store(store: KnowledgeStore, caller: Caller, store_id: str) -> Binding:
    """Return the base and the caller's role in it.

    Raises:
        NotFound: there is no such base in the caller's tenant, or the caller is not a member.
    """
    found = await store.bindings(caller.tenant, caller.user_id, [store_id])
    if not found:
        raise NotFound(NO_STORE, param="vector_store_id")
    return found[0]
