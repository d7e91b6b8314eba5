"""How long a test waits for what has to come, at most."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")
PATIENCE_SECONDS = 600.0
"""Ends a wait for what never comes, sooner than the whole test is ended; no slow machine takes so long."""


async def eventually(look: Callable[[], Seen], is_enough: Callable[[Seen], bool]) -> Seen:
    """Let other tasks run until what they do is seen."""
    await until(lambda: is_enough(look()))
    return look()


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until this holds; the test's own timeout is the limit."""
    while not holds():  # noqa: ASYNC110 -- what is looked at tells nobody
        await asyncio.sleep(0)
