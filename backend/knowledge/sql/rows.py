"""Knowledge values to rows and back."""

from collections.abc import Iterable, Mapping, Sequence

import orjson
from sqlalchemy import RowMapping

from backend.foundation.sql.parameters import to_json
from backend.foundation.sql.statements import Row as PreparedRow
from backend.groups.domain import group_in
from backend.knowledge.domain.knowledge import Binding, Document, KnowledgeBase, MemberRole
from backend.knowledge.sql import tables
from backend.search.domain.chunks import STORED_FIELDS, Chunk, attributes_in
from shared.models.safe_summary import BaseContent, RestrictedGrade

Parameters = dict[str, object]
Row = PreparedRow | RowMapping

_LISTS = frozenset({"topics", "routing_keywords", "metadata"})

BASE_COLUMNS = [tables.knowledge_base.c[name] for name in KnowledgeBase.model_fields]
DOCUMENT_COLUMNS = [tables.document.c[name] for name in Document.model_fields]
CHUNK_COLUMNS = [tables.chunk.c[name] for name in STORED_FIELDS]

IS_OF_DOCUMENT = tables.chunk.c.edition_id == tables.document.c.edition_id
"""Joins chunks to documents; chunks of editions that are being written or deleted belong to no document."""


def base_parameters(base: KnowledgeBase) -> Parameters:
    """Make the columns of a base that its value has."""
    return make_columns(dict(base))


def make_columns(fields: Mapping[str, object]) -> Parameters:
    """Make the columns of some fields of a base."""
    return {name: to_json(value) if name in _LISTS else value for name, value in fields.items()}


def to_binding(row: Row) -> Binding:
    """Read a base, and the role in it of the user or of the group by which they have it."""
    columns = {name: row[name] for name in KnowledgeBase.model_fields}
    lists = {name: tuple(orjson.loads(row[name])) for name in ("topics", "routing_keywords")}
    read = {"metadata": attributes_in(row["metadata"]), **_read_rules(row)}
    base = KnowledgeBase.model_validate({**columns, **lists, **read})
    return Binding(base=base, role=to_role(row["role"]), via=group_in(row["member"]))


def find_strictest(found: Sequence[Row]) -> Iterable[Row]:
    """Return of each base the row that counts: the strictest role, and of equal ones the user's own."""
    if len(found) == 1:
        return found
    kept: dict[str, Row] = {}
    for row in found:
        other = kept.get(row["id"])
        if other is None or _order(row) < _order(other):
            kept[row["id"]] = row
    return kept.values()


def _order(row: Row) -> tuple[int, bool, str]:
    return to_role(row["role"]).rights, group_in(row["member"]) is not None, row["member"]


def _read_rules(row: Row) -> Parameters:
    """Read what an owner says of a base; content that this release does not know counts as the one with more rules."""
    is_plain = row["content"] in (None, BaseContent.DOCUMENTS)
    content = BaseContent.DOCUMENTS if is_plain else BaseContent.RECORDS
    return {"restricted_grade": to_grade(row["restricted_grade"]), "content": content}


def to_grade(stored: str | None) -> RestrictedGrade | None:
    """Read a grade; one that this release does not know counts as the stricter one."""
    is_known = stored is None or stored in list(RestrictedGrade)
    return RestrictedGrade(stored) if stored is not None and is_known else None if is_known else RestrictedGrade.STRICT


def to_role(stored: str) -> MemberRole:
    """Read a role; a role that this release does not know becomes the role with the fewest rights."""
    try:
        return MemberRole(stored)
    except ValueError:
        return MemberRole.RESTRICTED_ANALYST


def to_document(row: Row) -> Document:
    """Read a document without its body from a row that may hold more."""
    columns = {name: row[name] for name in Document.model_fields}
    notes = tuple(orjson.loads(row["notes"] or "[]"))
    return Document.model_validate({**columns, "attributes": attributes_in(row["attributes"]), "notes": notes})


def document_parameters(document: Document) -> Parameters:
    """Make the columns of a document that its value has."""
    notes = to_json(document.notes) if document.notes else None
    return {**document.model_dump(), "attributes": to_json(document.attributes), "notes": notes}


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
        "place": chunk.place.model_dump_json() if chunk.place is not None else None,
    }
