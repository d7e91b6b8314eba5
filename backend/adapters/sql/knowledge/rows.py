"""Knowledge values to rows and back."""

from collections.abc import Mapping
from typing import Any

import orjson

from backend.adapters.sql.codec import to_json
from backend.adapters.sql.knowledge import tables
from backend.domain.knowledge import Binding, Chunk, Document, Hit, KnowledgeBase, MemberRole

Parameters = dict[str, Any]
Row = Mapping[Any, Any]

BASE_COLUMNS = [tables.knowledge_base.c[name] for name in KnowledgeBase.model_fields]
DOCUMENT_COLUMNS = [tables.document.c[name] for name in Document.model_fields]
CHUNK_COLUMNS = [tables.chunk.c[name] for name in Chunk.model_fields]
HIT_COLUMNS = [
    *CHUNK_COLUMNS,
    tables.chunk.c.knowledge_base_id,
    tables.chunk.c.number,
    tables.document.c.name.label("document_name"),
]


def base_parameters(base: KnowledgeBase) -> Parameters:
    """Make the columns of a base that its value has."""
    lists = {"topics": to_json(base.topics), "routing_keywords": to_json(base.routing_keywords)}
    return {**base.model_dump(), **lists}


def to_binding(row: Row) -> Binding:
    """Read a base and the member's role in it."""
    columns = dict(row)
    role = MemberRole(columns.pop("role"))
    lists = {name: tuple(orjson.loads(columns[name])) for name in ("topics", "routing_keywords")}
    return Binding(base=KnowledgeBase.model_validate({**columns, **lists}), role=role)


def to_document(row: Row) -> Document:
    """Read a document without its body."""
    return Document.model_validate(dict(row))


def chunk_parameters(document: Document, chunk: Chunk, number: int) -> Parameters:
    """Make the row of a chunk."""
    return {
        **dict(chunk),
        "document_id": document.id,
        "heading_path": to_json(chunk.heading_path),
        "knowledge_base_id": document.knowledge_base_id,
        "number": number,
    }


def to_chunk(row: Row) -> Chunk:
    """Read a chunk from a row that may hold more."""
    columns = {name: row[name] for name in Chunk.model_fields}
    return Chunk.model_validate({**columns, "heading_path": tuple(orjson.loads(row["heading_path"]))})


def to_hit(row: Row, score: float) -> Hit:
    """Read a chunk with the names around it."""
    return Hit(
        knowledge_base_id=row["knowledge_base_id"],
        document_id=row["document_id"],
        document_name=row["document_name"],
        chunk=to_chunk(row),
        score=score,
    )
