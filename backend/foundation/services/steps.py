"""Driving work that is cut into short steps."""

import asyncio

from backend.foundation.domain.json_objects import Result, Steps


async def in_steps(steps: Steps[Result]) -> Result:
    """Run steps with the event loop's other work between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)
