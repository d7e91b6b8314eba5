"""The process that reads pictures on this machine: started when it is wanted, and replaced where it ended."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import psutil
import pytest

from backend.extraction.ocr.engine import EngineLimits, LocalPictureReader
from shared.errors import ModelRequestRejected, Unavailable

STAND_IN = "tests.fakes.picture_child"
Open = Callable[..., LocalPictureReader]


@pytest.fixture
async def open_engine() -> AsyncIterator[Open]:
    opened: list[LocalPictureReader] = []

    def make(module: str = STAND_IN, **limits: float) -> LocalPictureReader:
        opened.append(LocalPictureReader(EngineLimits()._replace(**limits), module))
        return opened[-1]

    yield make
    for engine in opened:
        await engine.close()


async def pid_of(engine: LocalPictureReader) -> int:
    pid, said = (await engine.read_picture(b"hello")).split()
    assert said == "hello"
    return int(pid)


async def test_one_process_reads_one_picture_after_another(open_engine: Open) -> None:
    engine = open_engine()
    pids = await asyncio.gather(*(pid_of(engine) for _ in range(5)))
    assert len(set(pids)) == 1
    with pytest.raises(ModelRequestRejected, match="no"):
        await engine.read_picture(b"fail")
    assert await pid_of(engine) == pids[0]
    await engine.close()
    assert not psutil.pid_exists(pids[0])


async def test_a_process_that_ends_over_a_picture_is_replaced(open_engine: Open) -> None:
    engine = open_engine()
    first = await pid_of(engine)
    with pytest.raises(ModelRequestRejected, match="ended over it"):
        await engine.read_picture(b"end")
    assert await pid_of(engine) != first


async def test_a_process_nobody_waits_for_is_ended(open_engine: Open) -> None:
    engine = open_engine()
    first = await pid_of(engine)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await engine.read_picture(b"hang")
    assert not psutil.pid_exists(first)
    assert await pid_of(engine) != first


async def test_an_idle_process_ends(open_engine: Open) -> None:
    engine = open_engine(idle_seconds=0)
    first = await pid_of(engine)
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if await pid_of(engine) != first:
            break
    assert not psutil.pid_exists(first)


async def test_an_engine_that_does_not_start_is_away(open_engine: Open) -> None:
    with pytest.raises(Unavailable, match="does not start"):
        await open_engine("tests.fakes.no_such_module").read_picture(b"hello")
