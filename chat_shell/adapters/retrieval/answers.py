"""The shapes of the backend's internal knowledge answers; fields we do not know are ignored."""

from typing import Any

from pydantic import BaseModel, field_validator

from chat_shell.ports import KnowledgeAnswer, KnowledgeChunk, KnowledgeDocument, KnowledgePage
from shared.models.execution import AccessMode


class _Chunk(BaseModel):
    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: tuple[str, ...]
    text: str
    score: float


class SearchAnswer(BaseModel):
    """What a search brought; an access mode that is missing or unknown is restricted."""

    access_mode: AccessMode = AccessMode.RESTRICTED
    whole: bool = False
    data: tuple[Any, ...] = ()

    @field_validator("access_mode", mode="before")
    @classmethod
    def _restricted_unless_full(cls, mode: object) -> AccessMode:
        return AccessMode.FULL if mode == AccessMode.FULL.value else AccessMode.RESTRICTED

    def value(self) -> KnowledgeAnswer:
        """Return the answer; chunks are read in full mode only."""
        if self.access_mode is not AccessMode.FULL:
            return KnowledgeAnswer(access_mode=self.access_mode, whole=False, chunks=())
        chunks = (KnowledgeChunk(**_Chunk.model_validate(one).model_dump()) for one in self.data)
        return KnowledgeAnswer(access_mode=self.access_mode, whole=self.whole, chunks=tuple(chunks))


class _Document(BaseModel):
    knowledge_base_id: str
    file_id: str
    filename: str
    size_bytes: int
    chunk_count: int


class DocumentsAnswer(BaseModel):
    """A list of documents."""

    data: tuple[_Document, ...]

    def value(self) -> tuple[KnowledgeDocument, ...]:
        """Return the documents in the order given."""
        return tuple(KnowledgeDocument(**one.model_dump()) for one in self.data)


class PageAnswer(BaseModel):
    """A page of a document."""

    file_id: str
    filename: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None

    def value(self) -> KnowledgePage:
        """Return the page."""
        return KnowledgePage(**self.model_dump())
