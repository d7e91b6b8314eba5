"""The store of API keys in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, text, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.paging import follows_row, rows_in_order
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Row, Statement
from backend.identity.domain import ApiKey, KeyOrigin, KeyRole, ProviderSession, RateLimits
from backend.identity.sql.tables import api_key

_HAS_ID = api_key.c.id == bindparam("where_id")
_HAS_HASH = api_key.c.key_hash == bindparam("where_hash")

_INSERT = Statement(insert(api_key))
_FIND = Statement(select(api_key).where(_HAS_HASH))
_FIND_BY_ID = Statement(select(api_key).where(_HAS_ID))
_PLACE = (api_key.c.created_at, api_key.c.id)
_ANY = Statement(select(api_key.c.id).limit(1))
_DELETE = Statement(delete(api_key).where(_HAS_ID))
_FORGET_REPLACEMENT = Statement(update(api_key).where(api_key.c.replaced_by == bindparam("where_id")))
_CONFIGURE = Statement(update(api_key).where(_HAS_HASH))
_REPLACE = Statement(
    update(api_key)
    .where(_HAS_ID, api_key.c.replaced_by.is_(None))
    .values(replaced_by=bindparam("set_replaced_by"), expires_at=bindparam("set_expires_at", type_=Instant))
)
_NOTE_USE = Statement(
    update(api_key)
    .where(
        _HAS_ID,
        or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < bindparam("where_unless_since", type_=Instant)),
    )
    .values(last_used_at=bindparam("set_last_used_at", type_=Instant))
)
_DELETE_OTHERS = Statement(
    delete(api_key).where(
        api_key.c.key_hash != bindparam("where_hash"),
        api_key.c.origin.in_([KeyOrigin.SETTING.value, KeyOrigin.GENERATED.value]),
    )
)
_DELETE_THOSE_OF_THE_FIRST_RELEASE = Statement(
    delete(api_key).where(
        api_key.c.origin.is_(None),
        api_key.c.user_id == bindparam("where_user_id"),
        api_key.c.tenant == bindparam("where_tenant"),
        api_key.c.role == bindparam("where_role"),
    )
)
_KEPT_WHEN_CONFIGURED = ("id", "key_hash", "created_at", "last_used_at")
_LOCK = text("LOCK TABLE api_key IN SHARE ROW EXCLUSIVE MODE")


class SqlApiKeyStore:
    """The `ApiKeyStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        await self._database.write(lambda connection: _INSERT.change(connection, _to_row(key)))

    async def add_first(self, key: ApiKey) -> bool:
        """Store a key where there is none yet."""

        def work(connection: Connection) -> bool:
            _keep_writers_out(connection)
            return _ANY.first(connection, {}) is None and _INSERT.change(connection, _to_row(key)) > 0

        return await self._database.write(work)

    async def set_configured(self, key: ApiKey) -> None:
        """Store the key of the operator's setting, and delete those from before it."""
        row = _to_row(key)
        changed = {name: value for name, value in row.items() if name not in _KEPT_WHEN_CONFIGURED}
        of_same_user = {f"where_{name}": row[name] for name in ("user_id", "tenant", "role")}

        def work(connection: Connection) -> None:
            _keep_writers_out(connection)
            _DELETE_OTHERS.change(connection, {"where_hash": key.key_hash})
            if not _CONFIGURE.change(connection, {"where_hash": key.key_hash, **changed}):
                _DELETE_THOSE_OF_THE_FIRST_RELEASE.change(connection, of_same_user)
                _INSERT.change(connection, row)

        await self._database.write(work)

    async def rotate(self, key_id: str, replacement: ApiKey, ends_at: datetime) -> bool:
        """Store the replacement of a key, which then expires at that instant."""
        change = {"where_id": key_id, "set_replaced_by": replacement.id, "set_expires_at": ends_at}

        def work(connection: Connection) -> bool:
            is_first = _REPLACE.change(connection, change) > 0
            return is_first and _INSERT.change(connection, _to_row(replacement)) > 0

        return await self._database.write(work)

    async def note_uses(self, uses: Mapping[str, datetime], unless_since: Mapping[str, datetime]) -> None:
        """Store when keys were last used, in the order of their ids, so that replicas do not wait for each other."""
        changes = [
            {"where_id": key_id, "set_last_used_at": uses[key_id], "where_unless_since": unless_since[key_id]}
            for key_id in sorted(uses)
        ]
        if changes:
            await self._database.write(lambda connection: _NOTE_USE.change(connection, *changes))

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key with this hash, or None."""
        row = await self._database.find(_FIND, {"where_hash": key_hash})
        return _to_key(row) if row is not None else None

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, or None."""
        row = await self._database.find(_FIND_BY_ID, {"where_id": key_id})
        return _to_key(row) if row is not None else None

    async def page(self, after: ApiKey | None, limit: int, *, descending: bool) -> tuple[ApiKey, ...]:
        """Return up to `limit` keys behind another one, or the first ones."""
        query = select(api_key).order_by(*rows_in_order(_PLACE, descending=descending)).limit(limit)
        if after is not None:
            query = query.where(follows_row(_PLACE, after.created_at, after.id, descending=descending))
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(map(_to_key, cast(Sequence[Row], rows)))

    async def delete(self, key_id: str) -> bool:
        """Delete a key; return False where there is none with this id."""

        def work(connection: Connection) -> bool:
            _FORGET_REPLACEMENT.change(connection, {"where_id": key_id, "replaced_by": None})
            return _DELETE.change(connection, {"where_id": key_id}) > 0

        return await self._database.write(work)

    async def end_sessions(self, ended: ProviderSession) -> int:
        """Delete the keys of a session, or of all sessions of a subject where no session is named."""
        column, wanted = api_key.c.session_id, ended.session_id
        if wanted is None:
            column, wanted = api_key.c.session_subject, ended.subject
        statement = delete(api_key).where(column == wanted)
        return await self._database.write(lambda connection: connection.execute(statement).rowcount)

    async def delete_expired_sessions(self, before: datetime) -> None:
        """Delete the keys of sessions that had expired before an instant."""
        expired = and_(api_key.c.session_subject.is_not(None), api_key.c.expires_at < before)
        await self._database.write(lambda connection: connection.execute(delete(api_key).where(expired)))


def _keep_writers_out(connection: Connection) -> None:
    """Let one transaction at a time look and then write; on SQLite a writer is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _to_row(key: ApiKey) -> dict[str, object]:
    origin = key.origin.value if key.origin is not None else None
    fields = {**key.model_dump(exclude={"limits", "session"}), **key.limits.model_dump(), "role": key.role.value}
    if (session := key.session) is not None:
        # An origin of its own would be one that the release before cannot read.
        origin = KeyOrigin.ISSUED.value
        fields |= {"session_subject": session.subject, "session_id": session.session_id}
    return {**fields, "origin": origin}


def _to_key(row: Row) -> ApiKey:
    limits = {name: row[name] for name in RateLimits.model_fields}
    subject, session_id = row["session_subject"], row["session_id"]
    session = ProviderSession(subject=subject, session_id=session_id) if subject is not None else None
    apart = {*limits, "session_subject", "session_id"}
    fields = {name: value for name, value in row.items() if name not in apart}
    read = {"role": KeyRole(row["role"]), "origin": _origin(row), "limits": limits, "session": session}
    return ApiKey.model_validate({**fields, **read})


def _origin(row: Row) -> KeyOrigin | None:
    if row["session_subject"] is not None:
        return KeyOrigin.SESSION
    return KeyOrigin(row["origin"]) if row["origin"] is not None else None
