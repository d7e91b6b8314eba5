"""Noticing that chat_shell stands still while a turn runs by a call of its own: it says nothing for some heartbeats."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from backend.chat_shell_client.refusals import SILENT
from shared.errors import ChatShellSilent

SILENT_BEATS = 3
"""So many heartbeats may be missing, one after another: with the next one a replica counts as frozen."""

FIRST_BEAT_SECONDS = 1.25
BYTES_A_SECOND = 16_777_216
"""A request's first sign is its first model call, which begins as soon as the request has been read."""

T = TypeVar("T")


def count_first_beat_seconds(body_bytes: int) -> float:
    """Return how long a beat is until the first sign; a long request takes its time to be read."""
    return FIRST_BEAT_SECONDS + body_bytes / BYTES_A_SECOND


async def listen(reading: Awaitable[T], beat_seconds: float | None) -> T:
    """Wait for what is read; without a length of beats for as long as it takes.

    Beats are counted and not seconds: while this process stands still, it hears nothing and counts nothing.

    Raises:
        ChatShellSilent: too many beats were missed; the reading is cancelled.
    """
    if beat_seconds is None:
        return await reading
    loop, listening = asyncio.get_running_loop(), asyncio.timeout(None)

    def beat(left: int) -> None:
        nonlocal timer
        if left:
            timer = loop.call_later(beat_seconds, beat, left - 1)
        else:
            listening.reschedule(loop.time())

    timer = loop.call_later(beat_seconds, beat, SILENT_BEATS)
    try:
        async with listening:
            return await reading
    except TimeoutError:
        if listening.expired():
            raise ChatShellSilent(SILENT) from None
        raise
    finally:
        timer.cancel()
