"""Running work that may fail without ending the work around it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

from shared.errors import Unavailable

Result = TypeVar("Result")


async def repeat_forever(step: Callable[[], Awaitable[None]], seconds_between: float) -> None:
    """Run `step` at once and then again and again until cancelled; `Unavailable` only delays it to the next time."""
    while True:
        with suppress(Unavailable):
            await step()
        await asyncio.sleep(seconds_between)


async def result_or_error(work: Coroutine[object, None, Result]) -> Result | BaseException:
    """Run work to its end; return its result, or the exception that it raised.

    When the caller is cancelled, the work is cancelled too and awaited before the cancellation goes on.
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
