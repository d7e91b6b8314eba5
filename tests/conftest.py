"""What every test may ask for, and the order of the files."""

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import IS_THOROUGH, of_many

# No example is timed, and no generation of examples either: speed belongs in the benchmark.
# The same examples on every run: a change is to be judged by what it changes. The thorough run looks for new ones.
settings.register_profile(
    "untimed",
    deadline=None,
    derandomize=not IS_THOROUGH,
    max_examples=of_many(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so. Services of tests would inherit that, and ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONG_FILES = ("tests/integration/test_openapi_fuzz.py", "tests/e2e/test_chaos.py", "tests/leaks/test_leaks.py")
"""Those of one test that takes half a minute: a worker that begins it at the end lets the others wait for it."""

pytest_plugins = ["tests.servers.fixtures"]

gc.disable()  # what the collection makes stays: no look for cycles would find anything to free


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first, and leave the order of all else as it is."""
    places = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Let later looks for cycles leave out what the collection has made: all of it stays to the end."""
    gc.freeze()
    gc.enable()
