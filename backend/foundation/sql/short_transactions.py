"""Long work in short transactions: whoever waits for the database gets his turn between them."""

from collections.abc import Generator
from time import perf_counter
from typing import Generic, TypeVar

from sqlalchemy import Connection

from backend.foundation.sql.database import Database

Result = TypeVar("Result")

Steps = Generator[None, Connection, Result]
"""Work that may be committed at each `yield`, where it is sent the connection to go on with; it begins with one."""

SLICE_SECONDS = 0.02
"""How long a transaction goes on to its next step; SQLite has one writer, for whom turns wait."""


async def run_in_steps(database: Database, steps: Steps[Result], slice_seconds: float = SLICE_SECONDS) -> Result:
    """Run work to its end and return what it returns; where it fails, what was committed by then stays."""
    slices = _Slices(steps, slice_seconds)
    while not (ended := await database.write(slices.advance)):
        continue
    return ended[0]


class _Slices(Generic[Result]):
    def __init__(self, steps: Steps[Result], slice_seconds: float) -> None:
        self._steps = steps
        self._slice_seconds = slice_seconds
        next(steps)

    def advance(self, connection: Connection) -> tuple[Result] | None:
        """Take steps for a while; return the result once there is none left."""
        began = perf_counter()
        try:
            self._steps.send(connection)
            while perf_counter() - began < self._slice_seconds:
                self._steps.send(connection)
        except StopIteration as end:
            return (end.value,)
        return None
