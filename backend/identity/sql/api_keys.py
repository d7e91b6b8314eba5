"""The store of API keys in SQL."""

from sqlalchemy import bindparam, delete, insert, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.statements import Row, Statement
from backend.identity.domain import ApiKey, KeyRole
from backend.identity.sql.tables import api_key

_INSERT = Statement(insert(api_key))
_FIND = Statement(select(api_key).where(api_key.c.key_hash == bindparam("where_hash")))
_ALL = Statement(select(api_key).order_by(api_key.c.created_at, api_key.c.id))
_DELETE = Statement(delete(api_key).where(api_key.c.id == bindparam("where_id")))


class SqlApiKeyStore:
    """The `ApiKeyStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        row = {**key.model_dump(), "role": key.role.value}
        await self._database.write(lambda connection: _INSERT.change(connection, row))

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key with this hash, or None."""
        row = await self._database.find(_FIND, {"where_hash": key_hash})
        return _to_key(row) if row is not None else None

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""
        return tuple(map(_to_key, await self._database.read(lambda connection: _ALL.rows(connection, {}))))

    async def delete(self, key_id: str) -> bool:
        """Delete a key; return False where there is none with this id."""
        return await self._database.write(lambda connection: _DELETE.change(connection, {"where_id": key_id}) > 0)


def _to_key(row: Row) -> ApiKey:
    return ApiKey.model_validate({**row, "role": KeyRole(row["role"])})
