"""What one key that floods the pair costs another one, where keys have limits: its first delta, beside calm."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from tests.bench.figures import Figure
from tests.bench.pair import BenchPair
from tests.bench.stores import Store
from tests.bench.streaming import Flow, load, load_command

FLOODS: Mapping[str, Mapping[str, int]] = {
    "has used up its minute": {"turns_per_minute": 1},
    "runs as many turns as it may": {"turns_at_once": 8},
}
NEIGHBOUR = Flow(1, 60, deltas=20)
FLOOD = Flow(64, 10_000_000, deltas=20)
"""So many requests at a time, each followed by the next one as soon as it is refused or answered."""

GOAL = 2
"""So many times as long as in calm a first delta of another key may take, while all of the flood is refused."""


def neighbour_figures(pair: BenchPair, _store: Store) -> list[Figure]:
    """Measure the turns of one key, one at a time, in calm and beside a flood of another key at each of its limits."""
    measured = new_key(pair, "measured", {})
    load(pair, NEIGHBOUR, key=measured)
    figures: list[Figure] = []
    for what, limits in FLOODS.items():
        calm = load(pair, NEIGHBOUR, key=measured)
        with flood(pair, new_key(pair, "flooding", limits)):
            beside = load(pair, NEIGHBOUR, key=measured)
        for name in ("p50", "p99"):
            key = f"first_delta_{name}_ms"
            goal = GOAL * calm[key] if name == "p50" and "turns_at_once" not in limits else None
            title = f"first delta beside a flood of a key that {what}, {name} (direct: in calm)"
            figures.append(Figure(title, beside[key], "ms", goal, direct=calm[key]))
    return figures


def new_key(pair: BenchPair, user: str, limits: Mapping[str, int]) -> str:
    """Return a key of a user with limits of its own."""
    with pair.client() as admin:
        made = admin.post("/v1/api_keys", json={"user_id": user, "role": "user", **limits})
        return made.raise_for_status().json()["key"]


@contextmanager
def flood(pair: BenchPair, key: str) -> Generator[None]:
    """Have a key ask for as many turns as it can while the block runs."""
    with subprocess.Popen(load_command(pair, FLOOD, key=key), stdout=subprocess.DEVNULL) as child:
        try:
            yield
        finally:
            child.kill()
