"""A process whose shutdown hangs says what hangs and ends; one that ends in time is left alone."""

import asyncio
import subprocess
import sys
import threading

from shared.shutdown_bound import EXIT_CODE, still_running
from tests.servers.services import ROOT, service_environment

PROGRAM = """
import asyncio, threading
from shared.shutdown_bound import ShutdownBound
{hanging}
async def serve():
    bound = ShutdownBound(lambda running: print(running, flush=True))
    bound.begin(3600)
    bound.begin({seconds})
    {last}
asyncio.run(serve())
"""
A_THREAD = "threading.Thread(target=threading.Event().wait, name='stuck-thread').start()"
A_TASK = "await asyncio.create_task(asyncio.Event().wait(), name='stuck-task')"
THE_LOOP = "threading.Event().wait()"


def run(hanging: str = "", last: str = "pass", seconds: float = 0.1) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(hanging=hanging, last=last, seconds=seconds)
    environment = service_environment({"PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_whatever_hangs_is_named_and_the_process_ends() -> None:
    for hanging, last, name in (
        (A_THREAD, "pass", "stuck-thread at threading.wait"),
        ("", A_TASK, "stuck-task at Event.wait"),
        ("", THE_LOOP, "MainThread at threading.wait"),
    ):
        ended = run(hanging, last)
        assert ended.returncode == EXIT_CODE
        assert name in ended.stdout


def test_a_process_that_ends_in_time_is_left_alone() -> None:
    ended = run(seconds=3600)
    assert (ended.returncode, ended.stdout) == (0, "")


async def test_a_task_is_named_by_the_innermost_place_that_it_waits_in() -> None:
    async def outer() -> None:
        await asyncio.sleep(3600)

    waiting = asyncio.create_task(outer(), name="outer-task")
    await asyncio.sleep(0)
    running = still_running(asyncio.get_running_loop())
    assert any(each.startswith("outer-task at sleep:") for each in running.tasks)
    assert not any(each.startswith(threading.current_thread().name) for each in running.threads)
    waiting.cancel()
