"""Knowledge values to rows and back."""

from typing import Any

import orjson
from sqlalchemy import ColumnElement, RowMapping, bindparam, select

from backend.foundation.sql.parameters import Dialect, is_among, to_json
from backend.foundation.sql.statements import Row as PreparedRow
from backend.knowledge.domain.knowledge import Binding, Document, KnowledgeBase, MemberRole
from backend.knowledge.sql import tables
from backend.search.domain.chunks import Chunk, ChunkHit

Parameters = dict[str, object]
Row = PreparedRow | RowMapping

BASE_COLUMNS = [tables.knowledge_base.c[name] for name in KnowledgeBase.model_fields]
DOCUMENT_COLUMNS = [tables.document.c[name] for name in Document.model_fields]
STORED_CHUNK_COLUMNS = [tables.chunk.c[name] for name in ("number", "id", "ordinal", "heading_path", "text", "tokens")]
CHUNK_COLUMNS = [*STORED_CHUNK_COLUMNS, tables.document.c.id.label("document_id")]
HIT_COLUMNS = [
    *CHUNK_COLUMNS,
    tables.chunk.c.knowledge_base_id,
    tables.document.c.name.label("document_name"),
    *(tables.document.c[name] for name in ("file_id", "filename", "attributes")),
]

IS_OF_DOCUMENT = tables.chunk.c.edition_id == tables.document.c.edition_id
"""Joins chunks to documents; chunks of editions that are being written or deleted belong to no document."""

FIRST_NUMBER = (
    select(tables.chunk.c.number)
    .where(IS_OF_DOCUMENT, tables.chunk.c.ordinal == 0)
    .correlate(tables.document)
    .scalar_subquery()
    .label("number")
)
"""The number of the first chunk of a document that has any; the others follow it.

A query of its own is asked for each document: PostgreSQL would read all chunks to join those of documents that it takes
for many.
"""


def are_numbered_chunks(dialect: Dialect) -> ColumnElement[bool]:
    """Select chunks of the base `:base_id` by the list `:numbers` of their numbers."""
    numbers = is_among(tables.chunk.c.number, "numbers", dialect)
    return (tables.chunk.c.knowledge_base_id == bindparam("base_id")) & numbers


def base_parameters(base: KnowledgeBase) -> Parameters:
    """Make the columns of a base that its value has."""
    values = {name: to_json(getattr(base, name)) for name in ("topics", "routing_keywords", "metadata")}
    return {**base.model_dump(), **values}


def to_binding(row: Row) -> Binding:
    """Read a base and the member's role in it."""
    columns = {name: row[name] for name in KnowledgeBase.model_fields}
    lists = {name: tuple(orjson.loads(row[name])) for name in ("topics", "routing_keywords")}
    metadata = {"metadata": to_mapping(row["metadata"])}
    return Binding(base=KnowledgeBase.model_validate({**columns, **lists, **metadata}), role=to_role(row["role"]))


def to_mapping(stored: str | None) -> dict[str, Any]:
    """Read pairs of keys and values; the release before stores none."""
    return orjson.loads(stored) if stored else {}


def to_role(stored: str) -> MemberRole:
    """Read a role; a role that this release does not know becomes the role with the fewest rights."""
    try:
        return MemberRole(stored)
    except ValueError:
        return MemberRole.RESTRICTED_ANALYST


def to_document(row: Row) -> Document:
    """Read a document without its body from a row that may hold more."""
    columns = {name: row[name] for name in Document.model_fields}
    return Document.model_validate({**columns, "attributes": to_mapping(row["attributes"])})


def document_parameters(document: Document) -> Parameters:
    """Make the columns of a document that its value has."""
    return {**document.model_dump(), "attributes": to_json(document.attributes)}


def chunk_parameters(edition_id: str, base_id: str, chunk: Chunk, number: int) -> Parameters:
    """Make the row of a chunk."""
    return {
        "edition_id": edition_id,
        "ordinal": chunk.ordinal,
        "id": chunk.id,
        "knowledge_base_id": base_id,
        "number": number,
        "tokens": chunk.tokens,
        "heading_path": to_json(chunk.heading_path),
        "text": chunk.text,
    }


def to_chunk(row: Row, document_id: str) -> Chunk:
    """Read a chunk of this document from a row that may hold more."""
    return Chunk(
        id=row["id"],
        document_id=document_id,
        ordinal=row["ordinal"],
        heading_path=tuple(orjson.loads(row["heading_path"])),
        text=row["text"],
        tokens=row["tokens"],
    )


def to_hit(row: Row, score: float) -> ChunkHit:
    """Read a chunk with the names around it."""
    return ChunkHit(
        knowledge_base_id=row["knowledge_base_id"],
        document_id=row["document_id"],
        document_name=row["document_name"],
        chunk=to_chunk(row, row["document_id"]),
        score=score,
        file_id=row["file_id"],
        filename=row["filename"],
        attributes=to_mapping(row["attributes"]),
    )
