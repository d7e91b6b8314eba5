"""The frequency at which Python looks for reference cycles: each look holds the event loop."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

ALLOCATIONS_BETWEEN_LOOKS = 20_000
"""A turn makes some thousand objects that live as long as it does; with Python's own 700 each is looked at often."""


@contextmanager
def no_looks_for_cycles() -> Generator[None]:
    """Import a service in this block: what imports make stays, and looks would take a tenth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def look_for_cycles_rarely() -> None:
    """Call this when all is built: what the imports have made is never looked at again."""
    gc.set_threshold(ALLOCATIONS_BETWEEN_LOOKS)
    gc.freeze()
