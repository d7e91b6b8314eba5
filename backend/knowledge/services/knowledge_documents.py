"""Reading, listing and deleting the documents of a base."""

from typing import NamedTuple

from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_read, require_write
from backend.knowledge.domain.knowledge import Binding, Document
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.document_text import TextPage, text_page
from backend.knowledge.services.knowledge_access import find_binding
from backend.search.domain.chunks import Chunk
from shared.errors import NotFound


class DocumentPage(NamedTuple):
    """Some documents of a base, and whether there are more behind them."""

    binding: Binding
    documents: tuple[Document, ...]
    has_more: bool


class ChunkPage(NamedTuple):
    """Some chunks of a document, and whether there are more behind them."""

    chunks: tuple[Chunk, ...]
    has_more: bool


class KnowledgeDocuments:
    """The documents of bases.

    Every method raises NotFound for a caller who is not a member, and PermissionDenied for a role without this right.
    """

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def page(
        self, caller: Caller, base_id: str, *, after: str | None, limit: int, descending: bool
    ) -> DocumentPage:
        """Return up to `limit` documents by name.

        Raises:
            NotFound: `after` names no document of the base.
        """
        binding = await find_binding(self._store, caller, base_id)
        require_read(binding)
        found = await self._store.documents(base_id, after=after, limit=limit + 1, descending=descending)
        return DocumentPage(binding, found[:limit], len(found) > limit)

    async def chunks(self, caller: Caller, base_id: str, name: str, *, after: str | None, limit: int) -> ChunkPage:
        """Return up to `limit` chunks of the document with this name, in its order.

        Raises:
            NotFound: there is no such document, or `after` names no chunk of it.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._named(base_id, name, "document")
        found = await self._store.chunks(document.id, after=after, limit=limit + 1)
        return ChunkPage(found[:limit], len(found) > limit)

    async def read(self, caller: Caller, base_id: str, name: str) -> tuple[Document, bytes]:
        """Return a document and its bytes.

        Raises:
            NotFound: there is no such document.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._named(base_id, name, "name")
        return document, await self._store.document_body(document.id)

    async def text(self, caller: Caller, base_id: str, named: str, *, offset: int, limit: int) -> TextPage:
        """Return up to `limit` characters from `offset` of the text of the document with this name or id.

        Raises:
            NotFound: there is no such document.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._store.find_document(base_id, named) or await self._with_id(base_id, named)
        if document is None:
            raise NotFound("There is no such document.", param="document")
        return await text_page(self._store, document, offset, limit)

    async def _with_id(self, base_id: str, document_or_file_id: str) -> Document | None:
        found = await self._store.documents_from([document_or_file_id])
        return next((document for document in found if document.knowledge_base_id == base_id), None)

    async def delete(self, caller: Caller, base_id: str, name: str) -> Document:
        """Delete a document and return its values.

        Raises:
            NotFound: there is no such document.
        """
        require_write(await find_binding(self._store, caller, base_id))
        document = await self._named(base_id, name, "name")
        if not await self._store.delete_document(base_id, name):
            raise NotFound("There is no such document.", param="name")
        return document

    async def _named(self, base_id: str, name: str, param: str) -> Document:
        document = await self._store.find_document(base_id, name)
        if document is None:
            raise NotFound("There is no such document.", param=param)
        return document
