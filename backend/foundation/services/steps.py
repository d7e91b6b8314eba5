"""Long work beside the event loop's other work: in short steps, or in a thread."""

import asyncio
from collections.abc import Callable
from hashlib import sha256

from backend.foundation.domain.json_objects import Pause, Result, Steps, result_of

MAX_BYTES_HASHED_HERE = 1_000_000
"""More would hold the event loop for more than a millisecond."""

MANY = 200
"""Items, or entries of a log, that domain code goes through in a few milliseconds."""


async def run_in_thread_if_large(count: int, work: Callable[[], Result]) -> Result:
    """Run work over so many items: in a thread where they are many, where others have the loop at every few ms."""
    return await asyncio.to_thread(work) if count > MANY else work()


async def run_cooperatively(steps: Steps[Result]) -> Result:
    """Run steps with the event loop's other work between them, and from a pause before a long one in a thread."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        if pause is Pause.BEFORE_LONG:
            return await asyncio.to_thread(result_of, steps)
        await asyncio.sleep(0)


async def sha256_of(body: bytes | bytearray) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits, without holding the event loop for long ones."""
    is_long = len(body) > MAX_BYTES_HASHED_HERE
    digest = await asyncio.to_thread(sha256, body) if is_long else sha256(body)
    return digest.hexdigest()
