"""Where much is read, it is read in rounds; the first words, errors and the end of an answer never stay behind."""

import asyncio
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from chat_shell.models.transport.read_rounds import BUSY_READS, QUIET_ROUNDS, ReadRounds, RoundedReader
from tests.patience import PATIENCE_SECONDS


class HandTimer:
    """A clock that stands, and rounds that begin by hand."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def time(self) -> float:
        return 0.0

    def call_later(self, delay: float, callback: Callable[[], None], /) -> object:
        self.due.append(callback)
        return None

    def begin_round(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


def make_content() -> aiohttp.StreamReader:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    return aiohttp.StreamReader(protocol, 65_536, loop=loop)


def make_busy() -> tuple[HandTimer, ReadRounds]:
    timer = HandTimer()
    rounds = ReadRounds(timer)
    for _ in range(BUSY_READS):
        rounds.count_read()
    return timer, rounds


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_seldom_is_read_as_it_comes():
    timer = HandTimer()
    content = make_content()
    reader = RoundedReader(content, ReadRounds(timer))
    for _ in range(BUSY_READS - 1):
        content.feed_data(b"word")
        assert await reader.read(at_once=False) == b"word"
        reader.note_read()
    assert not timer.due


async def test_a_busy_process_reads_in_the_next_round_all_that_has_come():
    timer, rounds = make_busy()
    content = make_content()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        reading = group.create_task(RoundedReader(content, rounds).read(at_once=False))
        await settle()
        content.feed_data(b"one ")
        await settle()
        assert not reading.done()
        content.feed_data(b"two")
        timer.begin_round()
    assert reading.result() == b"one two"


async def test_first_words_wait_for_no_round():
    _, rounds = make_busy()
    content = make_content()
    content.feed_data(b"first")
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await RoundedReader(content, rounds).read(at_once=True) == b"first"


async def test_a_round_passes_by_whom_nothing_has_come_for():
    timer, rounds = make_busy()
    contents = [make_content() for _ in range(2)]
    readers = [RoundedReader(content, rounds) for content in contents]
    contents[0].feed_data(b"word")
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        first, second = [group.create_task(reader.read(at_once=False)) for reader in readers]
        await settle()
        timer.begin_round()
        await first
        assert not second.done()
        contents[1].feed_eof()
        timer.begin_round()
    assert second.result() == b""


async def test_an_error_is_raised_in_the_next_round():
    timer, rounds = make_busy()
    content = make_content()
    reading = asyncio.ensure_future(RoundedReader(content, rounds).read(at_once=False))
    await settle()
    content.set_exception(ConnectionResetError("cut"))
    timer.begin_round()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ConnectionResetError):
            await reading


async def test_rounds_end_where_little_is_read_and_whoever_waits_reads_on():
    timer, rounds = make_busy()
    content = make_content()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        reading = group.create_task(RoundedReader(content, rounds).read(at_once=False))
        await settle()
        for _ in range(QUIET_ROUNDS):
            timer.begin_round()
        assert not timer.due
        await settle()
        content.feed_data(b"word")
    assert reading.result() == b"word"


async def test_who_waits_no_more_is_forgotten():
    timer, rounds = make_busy()
    content = make_content()
    reader = RoundedReader(content, rounds)
    reading = asyncio.ensure_future(reader.read(at_once=False))
    await settle()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    content.feed_data(b"word")
    timer.begin_round()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        again = group.create_task(reader.read(at_once=False))
        await settle()
        assert not again.done()
        timer.begin_round()
    assert again.result() == b"word"
