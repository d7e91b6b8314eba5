"""API keys in SQL."""

from sqlalchemy import Connection, RowMapping, delete, insert, select

from backend.adapters.sql import schema
from backend.adapters.sql.database import Database
from backend.domain.identity import ApiKey, KeyRole

_key = schema.api_key


class SqlApiKeyStore:
    """The `ApiKeyStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        row = {**key.model_dump(), "role": key.role.value}

        def work(connection: Connection) -> None:
            connection.execute(insert(_key), row)

        await self._database.write(work)

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key, or None."""

        def work(connection: Connection) -> ApiKey | None:
            row = connection.execute(select(_key).where(_key.c.key_hash == key_hash)).mappings().first()
            return _to_key(row) if row is not None else None

        return await self._database.read(work)

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first."""

        def work(connection: Connection) -> tuple[ApiKey, ...]:
            query = select(_key).order_by(_key.c.created_at, _key.c.id)
            return tuple(_to_key(row) for row in connection.execute(query).mappings())

        return await self._database.read(work)

    async def delete(self, key_id: str) -> bool:
        """Delete a key; False when there was none."""

        def work(connection: Connection) -> bool:
            return connection.execute(delete(_key).where(_key.c.id == key_id)).rowcount > 0

        return await self._database.write(work)


def _to_key(row: RowMapping) -> ApiKey:
    return ApiKey.model_validate({**row, "role": KeyRole(row["role"])})
