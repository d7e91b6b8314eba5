"""Threads share the arenas of the C library where their number is limited."""

import subprocess
import sys

import pytest

_THREADS_THAT_ALLOCATE = """
import ctypes, os, sys, threading
from shared.memory import limit_memory_arenas

most = int(sys.argv[1])
assert not most or limit_memory_arenas(most)
library, together = ctypes.CDLL(None), threading.Barrier(8)

def allocate():
    together.wait()
    for _ in range(1_000):
        library.malloc(4_000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
"""


@pytest.mark.parametrize(("most", "is_limited"), [(1, True), (0, False)])
def test_eight_threads_share_as_many_arenas_as_are_allowed(most: int, is_limited: bool) -> None:
    command = [sys.executable, "-c", _THREADS_THAT_ALLOCATE, str(most)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert (found.count("<heap nr=") == 1) is is_limited
