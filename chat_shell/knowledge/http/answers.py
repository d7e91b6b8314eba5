"""The shapes of the backend's internal knowledge answers; fields we do not know are ignored."""

from typing import cast

from pydantic import BaseModel, model_validator

from chat_shell.knowledge.ports import KnowledgeAnswer, KnowledgeChunk, KnowledgeDocument, KnowledgePage
from shared.models.execution import AccessMode
from shared.models.values import JsonObject


class _Chunk(BaseModel):
    knowledge_base_id: str
    file_id: str
    filename: str
    heading_path: tuple[str, ...]
    text: str
    score: float


class SearchAnswer(BaseModel):
    """What a search brought; chunks are read in full mode only, and any mode but that is restricted."""

    access_mode: AccessMode
    whole: bool = False
    data: tuple[_Chunk, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _restricted_unless_full(cls, answer: object) -> object:
        if isinstance(answer, dict) and cast(JsonObject, answer).get("access_mode") == AccessMode.FULL.value:
            return cast(JsonObject, answer)
        return {"access_mode": AccessMode.RESTRICTED}

    def value(self) -> KnowledgeAnswer:
        """Return the answer."""
        chunks = tuple(KnowledgeChunk(**one.model_dump()) for one in self.data)
        return KnowledgeAnswer(access_mode=self.access_mode, whole=self.whole, chunks=chunks)


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
