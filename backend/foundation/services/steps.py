"""Work that may be long, beside the event loop's other work: in short steps, or in a thread."""

import asyncio
from collections.abc import Callable

from backend.foundation.domain.json_objects import Result, Steps

MANY = 200
"""Items, or entries of a log, that domain code goes through in a few milliseconds."""


async def beside_others(count: int, work: Callable[[], Result]) -> Result:
    """Run work over so many items: in a thread where they are many, where others have the loop at every few ms."""
    return await asyncio.to_thread(work) if count > MANY else work()


async def in_steps(steps: Steps[Result]) -> Result:
    """Run steps with the event loop's other work between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)
