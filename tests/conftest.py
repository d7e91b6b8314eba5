"""What every test may ask for, and the order of the files."""

import gc
import re
import signal
from pathlib import Path

import pytest
import structlog
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

IS_WHOLE = re.compile(r"^pytestmark = pytest\.mark\.whole$", re.MULTILINE)

# what structlog does by default, but for tracebacks: it would draw them with all local variables, for a second each
*_EARLIER, _ = structlog.get_config()["processors"]
_PLAIN = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*_EARLIER, _PLAIN])

pytest_plugins = ["tests.servers.fixtures"]

gc.disable()  # what the collection makes stays: no look for cycles would find anything to free


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which all is left out: some libraries that only such files need take seconds to import."""
    leaves_out = "not whole" in config.option.markexpr and collection_path.suffix == ".py"
    return True if leaves_out and IS_WHOLE.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first, and leave the order of all else as it is."""
    places = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Let later looks for cycles leave out what the collection has made: all of it stays to the end."""
    gc.freeze()
    gc.enable()
