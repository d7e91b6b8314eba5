"""A call that hears nothing: it ends after some beats, which are counted and not measured."""

import asyncio
import time

import pytest

from backend.chat_shell_client.silence import FIRST_BEAT_SECONDS, SILENT_BEATS, count_first_beat_seconds, listen
from shared.errors import ChatShellSilent

BEAT_SECONDS = 0.01


async def test_what_never_comes_is_given_up_and_cancelled() -> None:
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with pytest.raises(ChatShellSilent):
        await listen(never, BEAT_SECONDS)
    assert never.cancelled()


async def test_while_this_process_stands_still_one_beat_is_counted_at_most() -> None:
    loop = asyncio.get_running_loop()
    late: asyncio.Future[str] = loop.create_future()

    def stand_still() -> None:
        time.sleep(BEAT_SECONDS * SILENT_BEATS * 3)
        loop.call_soon(loop.call_soon, late.set_result, "heard")

    loop.call_soon(stand_still)
    assert await listen(late, BEAT_SECONDS) == "heard"


async def test_without_beats_it_waits_and_other_timeouts_stay_what_they_are() -> None:
    late: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(BEAT_SECONDS * (SILENT_BEATS + 2), late.set_result, "heard")
    assert await listen(late, None) == "heard"
    refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    refused.set_exception(TimeoutError("of the connection"))
    with pytest.raises(TimeoutError, match="of the connection"):
        await listen(refused, BEAT_SECONDS)


def test_a_long_request_has_longer_for_its_first_sign() -> None:
    assert count_first_beat_seconds(1000) < FIRST_BEAT_SECONDS + 0.01
    assert count_first_beat_seconds(64 << 20) >= FIRST_BEAT_SECONDS + 4
