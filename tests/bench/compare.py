"""Whether this state is heavier than the release before: `make bench-compare`, or `make bench-compare SHORT=1`.

    python -m tests.bench.compare [--short] [--commit before] [--store sqlite|postgres] [--only "a short turn"]

Both states run beside each other, each with a store of its own, and are loaded in turn, so that both have the same
share of what else the machine does. What is compared is the CPU of both services, by the scheduler's own count; stores,
load and model are not in it. In a burst both are loaded in many short turns; all that a state does from its beginning
to its end counts, so that nothing hides behind the answers.

A row is heavier where both the least burst of this state and the median of the bursts, each beside that of the other
state, lie more than 5 % above. It then is measured once more with processes started anew, because two processes of one
state differ, too, and it fails where all bursts together still say so. Writes var/bench/compare.json, and ends with 1
where a row fails.
"""

import argparse
import filecmp
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle, islice, repeat
from pathlib import Path

import httpx2
import uvloop

from tests.bench.load import Target, run_load
from tests.bench.pair import ADMIN_KEY, BenchPair, bench_pair
from tests.bench.searching import Writer
from tests.bench.stores import STORES, bench_store
from tests.bench.streaming import Flow
from tests.servers.services import ROOT
from tests.upgrade.previous import NoPreviousRelease, unpack_release

NAMED_IN = Path(__file__).with_name("release_before.txt")
RESULT = ROOT / "var" / "bench" / "compare.json"
BURSTS = 5
INGEST = "ingest"
MOST = 1.05
RAMP_SECONDS = 0.3
LOOK_SECONDS, QUIET_SHARE = 0.4, 0.05
"""Longer than the backend gathers changes of its index; and the share of it that it works for itself at most."""

SEARCHES = 25
MICROSECONDS = 1_000_000
WORDS_A_QUERY, HITS = 5, 10
PARAGRAPHS = 20
"""Of a document: some 35 kB."""


@dataclass(frozen=True)
class State:
    """A state of the code and the interpreter that has what it needs."""

    name: str
    code: Path
    python: str


@dataclass(frozen=True)
class Sizes:
    """How much is done at a time; each burst does a thing `times` times for each state."""

    turns: int
    paced: Flow
    unpaced: Flow
    documents: int
    times: int


FULL = Sizes(50, Flow(50, 50, 100, 50), Flow(50, 50), 150, 4)
"""The base has more than 100,000 chunks in the end."""

SHORT = Sizes(20, Flow(50, 50, 25, 50), Flow(50, 50, 50), 10, 2)


@dataclass
class Side:
    """A state with its store, as the bursts use it; each writes and asks the same."""

    pair: BenchPair
    client: httpx2.Client
    base: str
    writer: Writer = field(default_factory=Writer)
    documents: int = 0

    def turns(self, flow: Flow, unit: str) -> int:
        """Run stored turns; return how many turns or deltas these were."""
        body = json.dumps({"model": "bench", "stream": True, "store": True, "input": flow.asked}).encode()
        address, headers = f"{self.pair.backend_url}/v1/responses", (f"Authorization: Bearer {ADMIN_KEY}",)
        target = Target(address, body, headers, b"response.output_text.delta", b"data: [DONE]", repeat(""))
        seen = uvloop.run(run_load(target, flow.streams, flow.total, ramp_seconds=RAMP_SECONDS if flow.rate else 0))
        if seen["ended"] != flow.total:
            raise RuntimeError(f"{seen['ended']} of {flow.total} turns ended: {seen['errors']}")
        return flow.total * (flow.deltas if unit == "delta" else 1)

    def ingest(self, count: int) -> int:
        """Put further documents; return the number of their chunks."""
        chunks = 0
        for _ in range(count):
            self.documents += 1
            path = f"/v1/knowledge_bases/{self.base}/documents/{self.documents}.txt"
            body = self.writer.document(PARAGRAPHS)
            answer = self.client.put(path, content=body, headers={"Content-Type": "text/plain"})
            chunks += answer.raise_for_status().json()["chunks"]
        self._settle()
        return chunks

    def _settle(self) -> None:
        """Return when the index is in order again: until then the backend works without being asked."""
        spent, before = self.pair.cpu_seconds()["backend"], -QUIET_SHARE
        while spent - before >= QUIET_SHARE * LOOK_SECONDS:
            time.sleep(LOOK_SECONDS)
            before, spent = spent, self.pair.cpu_seconds()["backend"]

    def search(self, count: int) -> int:
        """Search for words drawn like the text's own; return how often."""
        for _ in range(count):
            body = {"query": self.writer.words(WORDS_A_QUERY), "max_results": HITS}
            answer = self.client.post(f"/v1/knowledge_bases/{self.base}/search", json=body)
            answer.raise_for_status()
        return count


@dataclass(frozen=True)
class Row:
    """What is compared: `load` does some of it, `times` times in a burst, and returns how many of its unit that was."""

    name: str
    unit: str
    times: int
    load: Callable[[Side], int]


def rows_of(sizes: Sizes) -> list[Row]:
    """Return all rows; the bursts of ingest fill the base that is searched behind them."""
    short, times = Flow(4, sizes.turns, deltas=5), sizes.times
    return [
        Row("a short turn", "turn", 4 * times, lambda side: side.turns(short, "turn")),
        Row("paced deltas", "delta", times, lambda side: side.turns(sizes.paced, "delta")),
        Row("unpaced deltas", "delta", 2 * times, lambda side: side.turns(sizes.unpaced, "delta")),
        Row(INGEST, "chunk", times, lambda side: side.ingest(sizes.documents)),
        Row("a search", "search", 2 * times, lambda side: side.search(SEARCHES)),
    ]


@dataclass(frozen=True)
class Compared:
    """A row with the microseconds of CPU for each unit, burst by burst."""

    store: str
    name: str
    unit: str
    before: Sequence[float]
    now: Sequence[float]

    @property
    def ratio(self) -> float:
        """The least of this state by the least of the one before."""
        return min(self.now) / min(self.before)

    @property
    def paired_ratio(self) -> float:
        """The median of each burst of this state by that of the one before."""
        return statistics.median(now / before for before, now in zip(self.before, self.now, strict=True))

    @property
    def is_heavier(self) -> bool:
        """Whether the difference is more than may be."""
        return min(self.ratio, self.paired_ratio) > MOST

    def with_more(self, more: "Compared") -> "Compared":
        """Return the row with further bursts."""
        return replace(self, before=(*self.before, *more.before), now=(*self.now, *more.now))

    def written(self) -> dict[str, object]:
        """Return the row for machines."""
        return {**asdict(self), "ratio": self.ratio, "paired_ratio": self.paired_ratio, "is_heavier": self.is_heavier}

    def cells(self) -> tuple[str, ...]:
        """Return the table's cells."""
        figures = (min(self.before), min(self.now), statistics.median(self.before), statistics.median(self.now))
        shown = (*(f"{figure:,.0f}" for figure in figures), f"{self.ratio:.3f}", f"{self.paired_ratio:.3f}")
        return (f"{self.name}, µs a {self.unit}", *shown, "HEAVIER" if self.is_heavier else "")


HEADINGS = ("CPU of both services", "before", "now", "median", "now", "ratio", "paired", "")


def compared(store: str, row: Row, sides: Sequence[Side]) -> Compared:
    """Load both sides in turn."""
    for side in sides:  # what a first time costs, later ones do not
        row.load(side)
    before, now = zip(*(burst(row, sides) for _ in range(BURSTS)), strict=True)
    return Compared(store, row.name, row.unit, before, now)


def burst(row: Row, sides: Sequence[Side]) -> list[float]:
    """Load the sides in turn; return the microseconds of CPU of each for one of its units."""
    began = [sum(side.pair.cpu_seconds().values()) for side in sides]
    units = [0, 0]
    for place in islice(cycle((0, 1, 1, 0)), 2 * row.times):
        units[place] += row.load(sides[place])
    spent = [sum(side.pair.cpu_seconds().values()) - before for side, before in zip(sides, began, strict=True)]
    return [seconds / count * MICROSECONDS for seconds, count in zip(spent, units, strict=True)]


@contextmanager
def running(state: State, store: str, directory: Path) -> Generator[Side]:
    """Run a state with a store of its own; hashes of both states fall alike, so that these do not tell them apart."""
    both = {"PYTHONPATH": str(state.code), "PYTHONHASHSEED": "0"}
    with ExitStack() as stack:
        lent = stack.enter_context(bench_store(store))
        pair = stack.enter_context(bench_pair(directory / state.name, lent.settings, both, state.python))
        client = stack.enter_context(pair.client())
        base = client.post("/v1/knowledge_bases", json={"name": "bench"}).raise_for_status().json()["id"]
        yield Side(pair, client, base)


def compare(store: str, rows: Sequence[Row], states: Sequence[State]) -> list[Compared]:
    """Compare both states row by row, with processes started for this."""
    with tempfile.TemporaryDirectory(prefix="ballast-compare-") as directory, ExitStack() as stack:
        sides = [stack.enter_context(running(state, store, Path(directory))) for state in states]
        return [compared(store, row, sides) for row in rows]


def confirmed(store: str, rows: Sequence[Row], states: Sequence[State]) -> list[Compared]:
    """Compare, and measure once more what is heavier, with what comes before it: a search needs what is searched."""
    found = {each.name: each for each in compare(store, rows, states)}
    show(STORES[store], list(found.values()))
    heavier = {name for name, each in found.items() if each.is_heavier}
    if heavier:
        last = max(place for place, row in enumerate(rows) if row.name in heavier)
        chosen = [row for row in rows[: last + 1] if row.name in heavier or row.name == INGEST]
        for each in compare(store, chosen, states):
            found[each.name] = found[each.name].with_more(each)
        show(f"{STORES[store]}, measured once more", [found[name] for name in heavier])
    return list(found.values())


def show(title: str, found: Sequence[Compared]) -> None:
    """Print a table."""
    rows = [HEADINGS, *(each.cells() for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    print(title, *lines, "", sep="\n", flush=True)


def state_before(commit: str, directory: Path) -> State:
    """Unpack a commit; it gets an environment of its own where it needs other packages than this state.

    Raises:
        NoPreviousRelease: the commit cannot be read.
    """
    code = directory / commit
    if not code.exists():
        with tempfile.TemporaryDirectory(dir=directory) as unpacked:
            unpack_release(commit, Path(unpacked) / "code").rename(code)
    lock = Path("requirements") / "run.txt"
    if filecmp.cmp(code / lock, ROOT / lock, shallow=False):
        return State("before", code, sys.executable)
    subprocess.run([sys.executable, str(code / "requirements" / "install.py"), "run"], check=True)
    return State("before", code, str(code / ".venv" / "bin" / "python"))


def main(arguments: Sequence[str]) -> int:
    """Compare on each store; return 1 where this state is heavier."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compare")
    parser.add_argument("--short", action="store_true", help="three minutes, with a small base")
    parser.add_argument("--commit", default=NAMED_IN.read_text(encoding="ascii").strip())
    parser.add_argument("--store", choices=tuple(STORES), action="append", help="by default both")
    parser.add_argument("--only", action="append", help="a row by its name; by default all")
    given = parser.parse_args(arguments)
    rows = [row for row in rows_of(SHORT if given.short else FULL) if not given.only or row.name in given.only]
    releases = ROOT / "var" / "releases"
    releases.mkdir(parents=True, exist_ok=True)
    try:
        states = (state_before(given.commit, releases), State("now", ROOT, sys.executable))
    except NoPreviousRelease as error:
        print(error, file=sys.stderr)
        return 1
    found = [each for store in given.store or STORES for each in confirmed(store, rows, states)]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    written = [
        {**asdict(each), "ratio": each.ratio, "paired": each.paired_ratio, "is_heavier": each.is_heavier}
        for each in found
    ]
    RESULT.write_text(json.dumps({"before": given.commit, "rows": written}, indent=1), encoding="utf-8")
    return int(any(each.is_heavier for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
