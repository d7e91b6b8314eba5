"""What callers that flood the pair cost another key, where keys have limits: its first delta, and memory."""

import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.figures import Figure
from tests.bench.load import VARIED
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.stores import Store
from tests.bench.streaming import Flow, load, load_command

NEIGHBOUR = Flow(1, 60, deltas=20)
FLOOD = Flow(64, 10_000_000, deltas=20)
"""So many requests at a time, each followed by the next one as soon as it is refused or answered."""

GOAL = 2
"""So many times as long as in calm a first delta of another key may take, while all of the flood is refused."""

KEYS = 64
"""So many keys a flooding tenant has."""

TENANT_TURNS = 150
"""So many turns a minute a tenant may have there: enough for the measured one."""

RUNNING = "a key that runs as many turns as it may"
LONG_SAID = "a" * 3_000_000
LONG_FLOOD = Flow(40, 10_000_000)
LONG_SECONDS = 72.0
"""Longer than a minute, so that the key may begin a turn again meanwhile."""


def neighbour_figures(_: BenchPair, store: Store) -> list[Figure]:
    """Measure the turns of one key, one at a time, in calm and beside floods, and then what a flood of bodies holds."""
    settings = {**store.settings, "BACKEND_TENANT_TURNS_PER_MINUTE": str(TENANT_TURNS)}
    with TemporaryDirectory() as directory, bench_pair(Path(directory), settings) as pair:
        return [*_delays(pair), *body_figures(pair)]


def _delays(pair: BenchPair) -> list[Figure]:
    load(pair, NEIGHBOUR, key=new_key(pair, "warm"))
    floods = {
        "a key that has used up its minute": load_command(
            pair, FLOOD, key=new_key(pair, "used-up", turns_per_minute=1)
        ),
        f"{KEYS} keys of a tenant that has used up its minute": _tenant(pair),
        "wrong keys, each another one": load_command(pair, FLOOD, key=VARIED),
        RUNNING: load_command(pair, FLOOD, key=new_key(pair, "full", turns_at_once=8)),
    }
    figures: list[Figure] = []
    for number, (what, command) in enumerate(floods.items()):
        measured = new_key(pair, f"measured-{number}")
        calm = load(pair, NEIGHBOUR, key=measured)
        with flood(command):
            beside = load(pair, NEIGHBOUR, key=measured)
        for name in ("p50", "p99"):
            key = f"first_delta_{name}_ms"
            goal = GOAL * calm[key] if name == "p50" and what != RUNNING else None
            title = f"first delta beside a flood of {what}, {name} (direct: in calm)"
            figures.append(Figure(title, beside[key], "ms", goal, direct=calm[key]))
    return figures


def _tenant(pair: BenchPair) -> list[str]:
    """Return the flood of a tenant's keys, each of which has a limit of its own that it does not reach."""
    keys = [new_key(pair, "crowd", turns_per_minute=TENANT_TURNS) for _ in range(KEYS)]
    load(pair, Flow(8, TENANT_TURNS, deltas=1), key=VARIED, varied=keys)
    return load_command(pair, FLOOD, key=VARIED, varied=keys)


def body_figures(pair: BenchPair) -> list[Figure]:
    """Measure the memory that long bodies of a refused key take, each with an Idempotency-Key of its own."""
    key, calm = new_key(pair, "sending", turns_per_minute=1), pair.peak_memory_mb()
    load(pair, Flow(1, 1), key=key)
    with flood(load_command(pair, LONG_FLOOD, key=key, said=LONG_SAID, headers=[f"Idempotency-Key: {VARIED}"])):
        time.sleep(LONG_SECONDS)
        beside = pair.peak_memory_mb()
    title = f"most memory of the backend beside {LONG_FLOOD.streams} bodies of 3 MB of a refused key (direct: before)"
    return [Figure(title, beside, "MB", direct=calm)]


def new_key(pair: BenchPair, name: str, **limits: int) -> str:
    """Return a key with limits of its own, of a user and a tenant of this name."""
    with pair.client() as admin:
        made = admin.post("/v1/api_keys", json={"user_id": name, "tenant": name, "role": "user", **limits})
        return made.raise_for_status().json()["key"]


@contextmanager
def flood(command: Sequence[str]) -> Generator[None]:
    """Have a load generator ask for as many turns as it can while the block runs."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        try:
            yield
        finally:
            child.kill()
