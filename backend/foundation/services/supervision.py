"""Running foreign or detached work so that its failure is a value."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from shared.errors import Unavailable

Result = TypeVar("Result")


async def repeat_forever(step: Callable[[], Awaitable[None]], seconds_between: float) -> None:
    """Do a step until cancelled, the first time at once; while what it needs is away, later."""
    while True:
        with suppress(Unavailable):
            await step()
        await asyncio.sleep(seconds_between)


async def result_or_error(work: Coroutine[Any, Any, Result]) -> Result | BaseException:
    """Run work to its end; return its result, or what it raised.

    Cancelling the caller cancels the work, waits for its end and goes on as a cancellation.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    error = task.exception()
    return task.result() if error is None else error
