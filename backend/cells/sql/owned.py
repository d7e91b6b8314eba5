"""What a tenant owns, told from the tables themselves: a table added tomorrow is moved, or a test says that it is not.

A row is a tenant's where its table has a `tenant`, where a foreign key leads to such a row, or where only rows of the
tenant refer to it.
"""

from functools import cache

from sqlalchemy import ColumnElement, ForeignKeyConstraint, Table, and_, func, or_, select, text
from sqlalchemy import tuple_ as row_of

from backend.foundation.sql.schema import metadata

LEFT_BEHIND = {
    "index_segment": "the index of words, which the other cell makes of the documents before the switch",
    "index_gone": "the index of words",
    "index_page": "the index of words",
    "vector_space": "vectors, which the other cell makes of the texts by its own embedding model",
    "edition_vectors": "vectors",
    "chunk_claim": "vectors",
    "engine_change": "what the engine beside the old cell is to be told",
    "replica": "the leases of the cell's own processes",
    "tenant_move": "the move itself",
}
"""Tables whose rows stay in their cell, and why."""

OWN_OF_CELL = {"document": ("indexed_edition_id", "index_token_count"), "knowledge_base": ("indexed_version",)}
"""Columns by which a cell tells what its own index holds of a document and a base."""

LATE = {
    "api_key": text("api_key.origin IS DISTINCT FROM 'setting'"),
    "attachment": text("attachment.status = 'in_progress'"),
    "response": text("response.status IN ('queued', 'in_progress')"),
    "waiting_turn": text("true"),
}
"""Rows that somebody works on as soon as they are there: they come with the switch. The others of keys never do."""

NOT_WAITED_FOR = ("last_used_at", "last_active_at", "touched_at", *(name for of in OWN_OF_CELL.values() for name in of))
"""Columns that change without a request of the tenant, and that no copy has to have of the last second."""


@cache
def tables_of_tenants() -> tuple[Table, ...]:
    """Return the tables of which a tenant owns rows, those that others refer to first."""
    return tuple(table for table in metadata.sorted_tables if table.name not in LEFT_BEHIND and _is_owned(table))


def _is_owned(table: Table) -> bool:
    return (
        "tenant" in table.c or parent_key(table) is not None or bool(_keys_of_children(table)) or "created" in table.c
    )


@cache
def parent_key(table: Table) -> ForeignKeyConstraint | None:
    """Return the foreign key by which rows of a table without a tenant are owned."""
    keys = sorted(table.foreign_key_constraints, key=lambda key: [column.name for column in key.columns])
    for key in keys:
        parent = key.referred_table
        if "tenant" in parent.c or parent_key(parent) is not None:
            return key
    return None


def belongs_to(table: Table, tenant: str) -> ColumnElement[bool]:
    """Return the condition by which rows of a table are a tenant's."""
    if "tenant" in table.c:
        return table.c.tenant == tenant
    key = parent_key(table)
    if key is not None:
        parents = select(*(element.column for element in key.elements)).where(belongs_to(key.referred_table, tenant))
        return row_of(*key.columns).in_(parents)
    children = _keys_of_children(table)
    return or_(*(_is_referred(table, each, tenant) for each in children)) if children else _has_created(table, tenant)


def identity_of(table: Table) -> tuple[str, ...]:
    """Return the columns that tell a row in any cell: the key, unless the database has numbered the rows."""
    if table.autoincrement_column is None:
        return tuple(column.name for column in table.primary_key.columns)
    unique = next(each for each in table.indexes if each.unique)
    return tuple(column.name for column in unique.columns)


def columns_to_move(table: Table) -> tuple[str, ...]:
    """Return the columns whose values are the same in each cell."""
    own = {*OWN_OF_CELL.get(table.name, ()), *_number_column(table)}
    return tuple(column.name for column in table.columns if column.name not in own)


def is_of_conversation(table: Table) -> bool:
    """Whether rows belong to one conversation, and are written by its turns."""
    leads_there = any(key.referred_table.name == "conversation" for key in table.foreign_key_constraints)
    return table.name in ("conversation", "response") or (leads_there and table.name != "waiting_turn")


def _number_column(table: Table) -> tuple[str, ...]:
    return (table.autoincrement_column.name,) if table.autoincrement_column is not None else ()


@cache
def _keys_of_children(table: Table) -> tuple[ForeignKeyConstraint, ...]:
    keys = (key for child in metadata.sorted_tables for key in child.foreign_key_constraints)
    return tuple(key for key in keys if key.referred_table is table and parent_key(key.table) not in (None, key))


def _is_referred(table: Table, key: ForeignKeyConstraint, tenant: str) -> ColumnElement[bool]:
    pairs = [column == element.column for column, element in zip(key.columns, key.elements, strict=True)]
    return (
        select(text("1"))
        .select_from(key.table)
        .where(and_(*pairs), belongs_to(key.table, tenant))
        .correlate(table)
        .exists()
    )


def _has_created(table: Table, tenant: str) -> ColumnElement[bool]:
    """Rows of a table such as that of idempotency keys name what they created, and that is the tenant's."""
    named = func.split_part(table.c.created, " ", 1)
    objects = [
        each for each in metadata.sorted_tables if "id" in each.c and ("tenant" in each.c or each.name == "item")
    ]
    return or_(*(named.in_(select(each.c.id).where(belongs_to(each, tenant))) for each in objects))
