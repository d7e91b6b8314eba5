"""A database whose process dies."""

from collections.abc import Callable
from typing import Any, Literal

from sqlalchemy import Connection

from backend.foundation.sql.database import Database
from shared.errors import Unavailable


class FrailDatabase:
    """A database whose process dies, as far as its writes show, behind the first `writes_left`."""

    def __init__(self, database: Database, writes_left: int) -> None:
        self._database = database
        self.writes_left = writes_left

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        return self._database.dialect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        if not self.writes_left:
            raise Unavailable("The process is dead.")
        self.writes_left -= 1
        return await self._database.write(work, **options)
