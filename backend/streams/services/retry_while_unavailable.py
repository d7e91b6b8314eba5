"""Retries of writes that must succeed, however long the database is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, repeat
from typing import TypeVar

from shared.errors import Unavailable

Result = TypeVar("Result")

FINISH_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses between attempts to store the end while the database is unavailable; the last one repeats.

The attempts never stop: a turn without a stored end would block its conversation while this process runs.
"""


async def retry_while_unavailable(work: Callable[[], Awaitable[Result]], pauses_seconds: Sequence[float]) -> Result:
    """Repeat work while the database is unavailable; it must change nothing where it was done already."""
    pauses = chain(pauses_seconds, repeat(pauses_seconds[-1]))
    while True:
        try:
            return await work()
        except Unavailable:
            await asyncio.sleep(next(pauses))
