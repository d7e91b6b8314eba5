"""Long computations inside a unit of work."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.util import await_only

Result = TypeVar("Result")


def compute_aside(connection: Connection, work: Callable[[], Result]) -> Result:
    """Compute what takes long without stopping the event loop: it must not touch the connection.

    On PostgreSQL a unit of work runs on the event loop, so this goes into a thread; on SQLite it has one already.
    """
    return await_only(asyncio.to_thread(work)) if connection.dialect.is_async else work()
