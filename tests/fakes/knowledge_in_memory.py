"""Knowledge in memory: finds every document of the asked bases and remembers what it was asked."""

from chat_shell.knowledge.ports import KnowledgeAnswer, TurnCredentials
from shared.errors import BallastError, NotFound, PermissionDenied
from shared.models.execution import AccessMode
from shared.models.knowledge_api import KnowledgeChunk, KnowledgeDocument, KnowledgePage


class KnowledgeInMemory:
    """Documents by base and name; `failure` is raised instead of an answer, `mode` is what every search says."""

    def __init__(self, stored: dict[str, dict[str, str]] | None = None):
        self.stored = stored or {}
        self.mode = AccessMode.FULL
        self.failure: BallastError | None = None
        self.searches: list[tuple[str, str, tuple[str, ...], int, int]] = []
        self.reads: list[tuple[str, int, int]] = []

    async def search(
        self,
        credentials: TurnCredentials,
        query: str,
        base_ids: tuple[str, ...],
        *,
        limit: int,
        whole_below_tokens: int,
    ) -> KnowledgeAnswer:
        self.searches.append((credentials.ticket, query, base_ids, limit, whole_below_tokens))
        self._check(base_ids)
        if self.mode is not AccessMode.FULL:
            return KnowledgeAnswer(access_mode=self.mode, chunks=())
        chunks = [
            KnowledgeChunk(
                knowledge_base_id=base_id,
                file_id=f"doc_{base_id}_{name}",
                filename=name,
                heading_path=("Top",),
                text=text,
                score=1.0,
            )
            for base_id in base_ids
            for name, text in self.stored[base_id].items()
        ]
        return KnowledgeAnswer(access_mode=self.mode, chunks=tuple(chunks[:limit]))

    async def list_documents(
        self, credentials: TurnCredentials, base_ids: tuple[str, ...]
    ) -> tuple[KnowledgeDocument, ...]:
        self._check(base_ids)
        return tuple(
            KnowledgeDocument(
                knowledge_base_id=base_id,
                file_id=f"doc_{base_id}_{name}",
                filename=name,
                size_bytes=len(text.encode()),
                chunk_count=1,
            )
            for base_id in base_ids
            for name, text in sorted(self.stored[base_id].items())
        )

    async def read_document(
        self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int
    ) -> KnowledgePage:
        self.reads.append((file_id, offset, limit))
        for document in await self.list_documents(credentials, tuple(self.stored)):
            if document.file_id == file_id:
                text = self.stored[document.knowledge_base_id][document.filename]
                stop = offset + limit
                return KnowledgePage(
                    file_id=file_id,
                    filename=document.filename,
                    text=text[offset:stop],
                    offset=offset,
                    total_characters=len(text),
                    next_offset=stop if stop < len(text) else None,
                )
        raise NotFound("no such document")

    async def read_file(self, credentials: TurnCredentials, file_id: str, *, offset: int, limit: int) -> KnowledgePage:
        """Return a page of an attached file; they are the documents of the base `files`."""
        return await self.read_document(credentials, file_id, offset=offset, limit=limit)

    def _check(self, base_ids: tuple[str, ...]) -> None:
        if self.failure is not None:
            raise self.failure
        if not set(base_ids) <= set(self.stored):
            raise PermissionDenied("a base that is not in the ticket")
