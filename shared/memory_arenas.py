"""The number of pools of free memory that the C library keeps for the threads of a process."""

import ctypes

_M_ARENA_MAX = -8
"""The parameter's number in glibc's `malloc.h` (https://man7.org/linux/man-pages/man3/mallopt.3.html)."""


def limit_memory_arenas(most: int) -> bool:
    """Have threads that start from now on share so many arenas; False where the C library has no such limit.

    glibc otherwise gives up to eight threads for each core an arena of their own, and what one thread has freed, the
    others cannot use: each thread that has ever read a document or a search's postings then holds memory for them.
    Under Python's interpreter lock few threads allocate at the same time, so that they hardly wait for a shared one.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_M_ARENA_MAX, most) == 1
