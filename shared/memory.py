"""The memory of a process: what is imported, how often Python looks for cycles, how many pools the C library keeps."""

import ctypes
import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import cast

ALLOCATIONS_BETWEEN_LOOKS = 20_000
"""A turn makes some thousand objects that live as long as it does; with Python's own 700 each is looked at often, and
each look holds the event loop."""

_M_ARENA_MAX = -8
"""The parameter's number in glibc's `malloc.h` (https://man7.org/linux/man-pages/man3/mallopt.3.html)."""


@contextmanager
def no_looks_for_cycles() -> Generator[None]:
    """Import a service in this block: what imports make stays, and looks would take a tenth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def left_out(name: str) -> Generator[None]:
    """Import a library in this block as if another one that it may use were not installed."""
    before, sys.modules[name] = sys.modules.get(name), cast(ModuleType, None)
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


def look_for_cycles_rarely() -> None:
    """Call this when all is built: what the imports have made is never looked at again."""
    gc.set_threshold(ALLOCATIONS_BETWEEN_LOOKS)
    gc.freeze()


def limit_memory_arenas(most: int) -> bool:
    """Have threads that start from now on share so many arenas; False where the C library has no such limit.

    glibc otherwise gives up to eight threads for each core an arena of their own, and what one thread has freed, the
    others cannot use: each thread that has ever read a document or a search's postings then holds memory for them.
    Under Python's interpreter lock few threads allocate at the same time, so that they hardly wait for a shared one.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_M_ARENA_MAX, most) == 1
