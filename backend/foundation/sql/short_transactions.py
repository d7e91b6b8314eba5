"""Long work in short transactions, so that other writers can write between two of them."""

from collections.abc import Generator
from datetime import timedelta
from time import perf_counter
from typing import Generic, TypeVar

from sqlalchemy import Connection

from backend.foundation.sql.database import Database

Result = TypeVar("Result")

DivisibleWork = Generator[None, Connection, Result]
"""Work that begins with a `yield` and may be committed at each; `yield` returns the connection to go on with."""

SLICE_SECONDS = 0.02
"""How long a transaction takes further steps of the work; SQLite has one writer, for which turns wait."""

LEFT_BEHIND_AFTER = timedelta(minutes=5)
"""Work that has not gone on for so long has been left by its process: hundreds of times the pause of a running one."""


async def run_in_short_transactions(
    database: Database, work: DivisibleWork[Result], slice_seconds: float = SLICE_SECONDS
) -> Result:
    """Run work to its end and return what it returns; where it fails, what was committed by then stays."""
    slices = _Slices(work, slice_seconds)
    while not (ended := await database.write(slices.advance)):
        continue
    return ended[0]


class _Slices(Generic[Result]):
    def __init__(self, work: DivisibleWork[Result], slice_seconds: float) -> None:
        self._work = work
        self._slice_seconds = slice_seconds
        next(work)

    def advance(self, connection: Connection) -> tuple[Result] | None:
        """Run one slice of the work; return its result in a tuple at its end, else None."""
        began = perf_counter()
        try:
            self._work.send(connection)
            while perf_counter() - began < self._slice_seconds:
                self._work.send(connection)
        except StopIteration as end:
            return (end.value,)
        return None
