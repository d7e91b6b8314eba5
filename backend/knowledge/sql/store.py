"""Bases, members and documents in SQL."""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    Connection,
    Executable,
    bindparam,
    case,
    delete,
    false,
    insert,
    or_,
    select,
    text,
    update,
)

from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.foundation.sql.statements import Statement
from backend.groups.sql.tables import by_way, is_anybody
from backend.knowledge.domain.attachments import Attachment
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.attachment_queue import queue_new
from backend.knowledge.sql.documents import SqlDocumentStore
from backend.knowledge.sql.editions import hold_base
from backend.knowledge.sql.maintenance import clear_base
from shared.errors import Conflict

_base = tables.knowledge_base
_member = tables.knowledge_member
_attachment = tables.attachment

_bound = (
    select(*rows.BASE_COLUMNS, _member.c.role, _member.c.user_id.label("member"))
    .join_from(_base, _member, _base.c.id == _member.c.knowledge_base_id)
    .where(_base.c.tenant == bindparam("tenant"))
)
_BINDINGS = by_way(_member.c.user_id, _bound)
_BINDINGS_AMONG = by_way(_member.c.user_id, _bound.where(_base.c.id.in_(bindparam("base_ids", expanding=True))))
_FIND_BINDING = Statement(by_way(_member.c.user_id, _bound.where(_base.c.id == bindparam("base_id"))))
# The columns are those of `base_parameters` and `_empty`.
_INSERT_MISSING = Statement(
    text("""
        INSERT INTO knowledge_base (id, tenant, name, summary, topics, routing_hint, routing_keywords, version,
            created_at, restricted_translation, metadata, last_active_at, embed,
            restricted_grade, support, content,
            chunk_count, index_token_count, next_chunk_number, indexed_version)
        VALUES (:id, :tenant, :name, :summary, :topics, :routing_hint, :routing_keywords, :version,
            :created_at, :restricted_translation, :metadata, :last_active_at, :embed,
            :restricted_grade, :support, :content,
            :chunk_count, :index_token_count, :next_chunk_number, :indexed_version)
        ON CONFLICT (id) DO NOTHING
    """).bindparams(bindparam("created_at", type_=Instant), bindparam("last_active_at", type_=Instant))
)
# What a summary for restricted members was made under.
_TERMS = frozenset({"restricted_translation", "restricted_grade", "support", "content"})


class SqlKnowledgeStore(SqlDocumentStore):
    """The `KnowledgeStore` over a `Database`, with the search index of its dialect."""

    async def create_base(
        self, base: KnowledgeBase, owner_id: str, claim: KeyClaim | None = None, attached: Sequence[Attachment] = ()
    ) -> None:
        """Store a base, its first owner and its queued files in one transaction."""

        def work(connection: Connection) -> None:
            take_key(connection, claim)
            connection.execute(insert(_base), {**rows.base_parameters(base), **_empty(base)})
            _insert_member(connection, base.id, owner_id, MemberRole.OWNER)
            self._index.open(connection, base.id)
            queue_new(connection, attached)

        await self._database.write(work)

    async def ensure_base(self, base: KnowledgeBase, owner_id: str) -> None:
        """Store a base unless there is one of its id; a second transaction waits for the first, and adds nothing."""

        def work(connection: Connection) -> None:
            if _INSERT_MISSING.change(connection, {**rows.base_parameters(base), **_empty(base)}):
                _insert_member(connection, base.id, owner_id, MemberRole.OWNER)
                self._index.open(connection, base.id)

        await self._database.write(work)

    async def bindings(self, tenant: str, user_id: str, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
        """Return the bases in which the user or a group of theirs is a member, ordered by id."""
        member: rows.Parameters = {"tenant": tenant, "user_id": user_id}
        if base_ids is not None and len(base_ids) == 1:
            found = await self._database.find_few(_FIND_BINDING, {**member, "base_id": base_ids[0]})
            return tuple(map(rows.to_binding, rows.find_strictest(found)))
        if base_ids is None:
            return await self._bindings(_BINDINGS, member)
        return await self._bindings(_BINDINGS_AMONG, {**member, "base_ids": list(base_ids)})

    async def update_base(self, base_id: str, changes: Mapping[str, object]) -> None:
        """Replace the given fields of a base's description."""
        values = rows.make_columns(changes)
        is_other = or_(false(), *(_base.c[name].is_distinct_from(values[name]) for name in _TERMS & values.keys()))
        growth = case((is_other, 1), else_=0)
        versions = {"version": _base.c.version + growth, "indexed_version": _base.c.indexed_version + growth}
        statement = update(_base).where(_base.c.id == base_id).values(**values, **versions)
        await self._database.write(lambda connection: connection.execute(statement))
        self._note_change(base_id)

    async def delete_base(self, base_id: str) -> None:
        """Delete a base with members, documents and chunks.

        A small transaction takes it from its members and from all searches; from then on it is nobody's base, and what
        it holds is deleted in further ones. Where the process ends before, `sweep` goes on with it.
        """

        def work(connection: Connection) -> bool:
            # The lock on the row makes writers to the base wait. The hooks run first, because deleting the base deletes
            # the rows that connect it to what other packages store.
            connection.execute(select(_base.c.id).where(_base.c.id == base_id).with_for_update())
            for hook in self._deletion_hooks:
                hook(connection, base_id)
            connection.execute(delete(_member).where(_member.c.knowledge_base_id == base_id))
            connection.execute(delete(_attachment).where(_attachment.c.knowledge_base_id == base_id))
            emptied = update(_base).where(_base.c.id == base_id).values(chunk_count=0, index_token_count=0)
            return bool(connection.execute(emptied).rowcount)

        if await self._database.write(work):
            await run_in_short_transactions(self._database, clear_base(base_id, self._index), self._slice_seconds)
        self._note_change(base_id)

    async def members(self, base_id: str) -> Mapping[str, MemberRole]:
        """Return members and their roles: user ids, and what stands for groups."""
        return await self._database.read(lambda connection: _read_members(connection, base_id))

    async def set_member(self, base_id: str, user_id: str, role: MemberRole) -> None:
        """Add a member or change their role."""

        def work(connection: Connection) -> None:
            hold_base(connection, base_id)
            _delete_member(connection, base_id, user_id)
            _insert_member(connection, base_id, user_id, role)
            _require_owner(connection, base_id)

        await self._database.write(work)

    async def remove_member(self, base_id: str, user_id: str) -> bool:
        """Remove a member; False when they were none."""

        def work(connection: Connection) -> bool:
            hold_base(connection, base_id)
            was_member = _delete_member(connection, base_id, user_id)
            if was_member:
                _require_owner(connection, base_id)
            return was_member

        return await self._database.write(work)

    async def _bindings(self, query: Executable, parameters: rows.Parameters) -> tuple[Binding, ...]:
        found = await self._database.read(lambda connection: connection.execute(query, parameters).mappings().all())
        return tuple(sorted(map(rows.to_binding, rows.find_strictest(found)), key=lambda binding: binding.base.id))


def _read_members(connection: Connection, base_id: str) -> Mapping[str, MemberRole]:
    query = select(_member.c.user_id, _member.c.role).where(_member.c.knowledge_base_id == base_id)
    roles = {row.user_id: rows.to_role(row.role) for row in connection.execute(query)}
    return dict(sorted(roles.items()))


def _require_owner(connection: Connection, base_id: str) -> None:
    """Undo what was done where nobody owns the base any more; a group without anybody in it is nobody."""
    is_owner = (_member.c.knowledge_base_id == base_id) & (_member.c.role == MemberRole.OWNER.value)
    if connection.execute(select(_member.c.user_id).where(is_owner, is_anybody(_member.c.user_id))).first() is None:
        raise Conflict("A knowledge base keeps at least one owner.", param="role")


def _empty(base: KnowledgeBase) -> rows.Parameters:
    """Return the columns of a base without documents."""
    return {"chunk_count": 0, "index_token_count": 0, "next_chunk_number": 0, "indexed_version": base.version}


def _insert_member(connection: Connection, base_id: str, user_id: str, role: MemberRole) -> None:
    row = {"knowledge_base_id": base_id, "user_id": user_id, "role": role.value}
    connection.execute(insert(_member), row)


def _delete_member(connection: Connection, base_id: str, user_id: str) -> bool:
    is_member = (_member.c.knowledge_base_id == base_id) & (_member.c.user_id == user_id)
    return connection.execute(delete(_member).where(is_member)).rowcount > 0
