"""Where the CPU of a turn goes: `make profile`, or `make profile LOAD="paced deltas"`.

    python -m tests.bench.profile [--load "a short turn"] [--store sqlite|postgres] [--seconds 20]

Samples both services with py-spy while one row of `make bench-compare` loads them. Each sample counts for the innermost
part on its stack: a package of ours, or a library that is named in `LIBRARIES`; the standard library and smaller
libraries count for who called them. What runs outside Python counts for the Python function that called it, and what
threads without Python do (those of gRPC) counts as all else does. Prints for each service the microseconds of CPU for
each part and the functions with most of it, and writes flame graphs and folded stacks to var/profile.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bench.compare import MICROSECONDS, SHORT, Row, Side, State, rows_of, running
from tests.bench.stores import STORES
from tests.servers.services import ROOT

OUT = ROOT / "var" / "profile"
SAMPLES_A_SECOND = 500
LIBRARIES = frozenset(
    {"aiohttp", "asyncpg", "fastapi", "google", "grpc", "httptools", "opentelemetry", "orjson", "prometheus_client"}
    | {"pydantic", "redis", "sqlalchemy", "starlette", "structlog", "uvicorn", "uvloop"}
)
SERVICES = ("backend", "chat_shell")
SHOWN = 15
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>[^()]+?)(?::\d+)?\)")
_INSTALLED = "/site-packages/"


@dataclass(frozen=True)
class Sampled:
    """A stack of a service, outermost frame first, with how often it was seen."""

    frames: tuple[str, ...]
    count: int

    @property
    def part(self) -> str:
        """The innermost part on the stack."""
        return next(filter(None, map(part_of, reversed(self.frames))), "the interpreter")


def part_of(frame: str) -> str | None:
    """Return the part that a frame belongs to: two levels of ours, or a named library."""
    found = _FRAME.fullmatch(frame)
    file = found["file"] if found is not None else ""
    if _INSTALLED in file:
        name = file.split(_INSTALLED, 1)[1].split("/", 1)[0].removesuffix(".py")
        return name if name in LIBRARIES else None
    if file.startswith(f"{ROOT}/"):
        return "/".join(file.removeprefix(f"{ROOT}/").split("/")[:2]).removesuffix(".py")
    return None


def samples_in(folded: str) -> Iterator[Sampled]:
    """Read folded stacks: frames with semicolons between, and their count."""
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        yield Sampled(tuple(stack.split(";")), int(count))


def shares_of(samples: Sequence[Sampled]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return how many samples each part has, and each function of its own and with all that it calls."""
    parts, own, whole = Counter[str](), Counter[str](), Counter[str]()
    for each in samples:
        parts[each.part] += each.count
        own[_named(each.frames[-1])] += each.count
        for name in {_named(frame) for frame in each.frames}:
            whole[name] += each.count
    return parts, own, whole


def _named(frame: str) -> str:
    """Shorten a frame to its function and its file, as it is imported."""
    found = _FRAME.fullmatch(frame)
    if found is None:
        return frame
    file = found["file"].split(_INSTALLED, 1)[-1].removeprefix(f"{ROOT}/")
    return f"{found['function']} ({file})"


def profile(store: str, row: Row, seconds: int) -> None:
    """Load this state with a row, and print where its time goes."""
    with tempfile.TemporaryDirectory(prefix="ballast-profile-") as directory, ExitStack() as stack:
        side = stack.enter_context(running(State("now", ROOT, sys.executable), store, Path(directory)))
        row.load(side)  # what a first time costs, later ones do not
        spent = _recorded(side, row, seconds, "raw", {name: OUT / f"{store}.{name}.folded" for name in SERVICES})
        _recorded(side, row, seconds, "flamegraph", {name: OUT / f"{store}.{name}.svg" for name in SERVICES})
    for name in SERVICES:
        folded = (OUT / f"{store}.{name}.folded").read_text(encoding="utf-8")
        _show(f"{name}, {STORES[store]}: {row.name}, µs of CPU a {row.unit}", list(samples_in(folded)), spent[name])


def _recorded(side: Side, row: Row, seconds: int, form: str, files: Mapping[str, Path]) -> dict[str, float]:
    """Load one state while its services are watched; return the microseconds of CPU of each for a unit of the row.

    Raises:
        SystemExit: py-spy ended with an error, which it has printed.
    """
    began, units = side.pair.cpu_seconds(), 0
    pids = {"backend": side.pair.backend.pid, "chat_shell": side.pair.chat_shell.pid}
    watching = [_watch(pids[name], seconds, form, file) for name, file in files.items()]
    while any(each.poll() is None for each in watching):
        units += row.load(side)
    if any(each.returncode for each in watching):
        raise SystemExit(1)
    return {name: (used - began[name]) / units * MICROSECONDS for name, used in side.pair.cpu_seconds().items()}


def _watch(pid: int, seconds: int, form: str, file: Path) -> subprocess.Popen[bytes]:
    """Sample who holds the interpreter, without stopping it: some kernels stop a process only where it waits."""
    command = [
        str(Path(sys.executable).with_name("py-spy")),
        "record",
        "--pid",
        str(pid),
        "--full-filenames",
        "--gil",
        "--nonblocking",
    ]
    options = ["--format", form, "--rate", str(SAMPLES_A_SECOND), "--duration", str(seconds), "--output", str(file)]
    return subprocess.Popen([*command, *options])


def _show(title: str, samples: Sequence[Sampled], spent: float) -> None:
    shares, total = shares_of(samples), sum(each.count for each in samples)
    print(f"{title}: {spent:,.0f}, {total:,} samples")
    for heading, counted in zip(
        ("by part", "by function, its own", "by function, with what it calls"), shares, strict=True
    ):
        print(f"  {heading}")
        for name, count in counted.most_common(SHOWN):
            print(f"    {count / total:6.1%} {count / total * spent:8,.0f}  {name}")
    print(flush=True)


def main(arguments: Sequence[str]) -> None:
    """Profile one row on each store."""
    rows = {row.name: row for row in rows_of(SHORT)}
    parser = argparse.ArgumentParser(prog="python -m tests.bench.profile")
    parser.add_argument("--load", choices=tuple(rows), default="a short turn")
    parser.add_argument("--store", choices=tuple(STORES), action="append", help="by default both")
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args(arguments)
    OUT.mkdir(parents=True, exist_ok=True)
    for store in given.store or STORES:
        profile(store, rows[given.load], given.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
