"""API keys in SQL."""

from sqlalchemy import Connection, bindparam, delete, insert, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.prepared import Prepared, Row
from backend.identity.domain import ApiKey, KeyRole
from backend.identity.sql.tables import api_key

_key = api_key

_INSERT = Prepared(insert(_key))
_FIND = Prepared(select(_key).where(_key.c.key_hash == bindparam("where_hash")))
_ALL = Prepared(select(_key).order_by(_key.c.created_at, _key.c.id))
_DELETE = Prepared(delete(_key).where(_key.c.id == bindparam("where_id")))


class SqlApiKeyStore:
    """The `ApiKeyStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        row = {**key.model_dump(), "role": key.role.value}

        def work(connection: Connection) -> None:
            _INSERT.change(connection, row)

        await self._database.write(work)

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key, or None."""
        row = await self._database.find(_FIND, {"where_hash": key_hash})
        return _to_key(row) if row is not None else None

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""

        def work(connection: Connection) -> tuple[ApiKey, ...]:
            return tuple(_to_key(row) for row in _ALL.rows(connection, {}))

        return await self._database.read(work)

    async def delete(self, key_id: str) -> bool:
        """Delete a key; False when there was none."""

        def work(connection: Connection) -> bool:
            return _DELETE.change(connection, {"where_id": key_id}) > 0

        return await self._database.write(work)


def _to_key(row: Row) -> ApiKey:
    return ApiKey.model_validate({**row, "role": KeyRole(row["role"])})
