"""The access of callers to vector stores, which are knowledge bases under the same roles, and taking files away."""

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.ports.attachments import AttachmentStore
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


async def drop_file(knowledge: KnowledgeStore, attachments: AttachmentStore, base_id: str, file_id: str) -> None:
    """Take a file from a base, with the document that was made of it; the uploaded file stays."""
    await attachments.drop_attachment(base_id, file_id)
    # It may have become a document at the last moment.
    left = await attachments.find_attached(base_id, file_id)
    if left is not None and left.document_name is not None:
        await knowledge.delete_document(base_id, left.document_name, file_id)
