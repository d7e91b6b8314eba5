"""Knowledge bases, the roles of their members, their documents, and what a document consists of."""

from datetime import datetime
from enum import StrEnum

from shared.models.execution import AccessMode
from shared.models.values import Value


class MemberRole(StrEnum):
    """What a member may do with a base."""

    OWNER = "owner"
    EDITOR = "editor"
    READER = "reader"
    RESTRICTED_ANALYST = "restricted_analyst"

    @property
    def access_mode(self) -> AccessMode:
        """FULL for the roles that are named here, which may read text; RESTRICTED for every other role."""
        reads = self in (MemberRole.OWNER, MemberRole.EDITOR, MemberRole.READER)
        return AccessMode.FULL if reads else AccessMode.RESTRICTED

    @property
    def may_write(self) -> bool:
        """Whether documents and description may be changed."""
        return self in (MemberRole.OWNER, MemberRole.EDITOR)


class KnowledgeBase(Value):
    """A base as its owner describes it.

    `version` grows with every change of its documents and of `restricted_translation`, which allows that restricted
    members are given summaries of its text in another language.
    """

    id: str
    tenant: str
    name: str
    summary: str
    topics: tuple[str, ...]
    routing_hint: str
    routing_keywords: tuple[str, ...]
    version: int
    created_at: datetime
    restricted_translation: bool = False


class Binding(Value):
    """A base and the role in which the caller uses it."""

    base: KnowledgeBase
    role: MemberRole


class Document(Value):
    """A document of a base; `name` is what it was put under, `id` what results and citations show."""

    id: str
    knowledge_base_id: str
    name: str
    media_type: str
    sha256: str
    size_bytes: int
    chunk_count: int
    created_at: datetime


class Heading(Value):
    """A heading of a document; level 1 is the outermost."""

    level: int
    text: str


class Paragraph(Value):
    """Running text, a list, a table or code, as one block of a document."""

    text: str


Block = Heading | Paragraph
"""A part of a document without its format; a document is read as blocks in reading order."""


class Chunk(Value):
    """A piece of a document, in document order; `heading_path` runs from the outermost heading in."""

    id: str
    document_id: str
    ordinal: int
    heading_path: tuple[str, ...]
    text: str
    tokens: int


class ChunkHit(Value):
    """A chunk that a search found; a higher score is a better hit."""

    knowledge_base_id: str
    document_id: str
    document_name: str
    chunk: Chunk
    score: float
