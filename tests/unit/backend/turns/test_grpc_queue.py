"""gRPC's queue outlives the last channel: a process in which it ends and begins again may crash."""

import subprocess
import sys

PROGRAM = """
import asyncio, gc, threading
from backend.turns.chat_shell.grpc_channels import CurrentChannel

async def open_and_close():
    await CurrentChannel("127.0.0.1:1", (), None).close()

asyncio.run(open_and_close())
gc.collect()
print(len(threading.enumerate()) - 1)
"""


def test_the_thread_of_the_queue_outlives_the_last_channel() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "1"
