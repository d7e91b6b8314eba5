"""What one key that floods the pair costs another one, where keys have limits: its first delta, beside calm."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from tests.bench.figures import Figure
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.stores import Store, bench_store
from tests.bench.streaming import Flow, load, load_command

LIMITS = {"BACKEND_KEY_TURNS_AT_ONCE": "8", "BACKEND_KEY_TURNS_PER_MINUTE": "600"}
NEIGHBOUR = Flow(1, 60, deltas=20)
FLOOD = Flow(64, 10_000_000, deltas=20)
"""So many requests at a time, each followed by the next one as soon as it is refused or answered."""


def neighbour_figures(plain: BenchPair, store: Store) -> list[Figure]:
    """Measure the turns of one key, one at a time, in calm and beside a flood of another."""
    with (
        bench_store(store.name) as other,
        bench_pair(plain.directory / "limited", {**other.settings, **LIMITS}) as pair,
    ):
        flooding, measured = (new_key(pair, user) for user in ("flooding", "measured"))
        load(pair, NEIGHBOUR, key=measured)
        calm = load(pair, NEIGHBOUR, key=measured)
        with flood(pair, flooding):
            beside = load(pair, NEIGHBOUR, key=measured)
        return [
            Figure(
                f"first delta of a key beside a flood of another, {name} (direct: in calm)",
                beside[key],
                "ms",
                direct=calm[key],
            )
            for name, key in (("p50", "first_delta_p50_ms"), ("p99", "first_delta_p99_ms"))
        ]


def new_key(pair: BenchPair, user: str) -> str:
    """Return a key of a user."""
    with pair.client() as admin:
        return admin.post("/v1/api_keys", json={"user_id": user, "role": "user"}).raise_for_status().json()["key"]


@contextmanager
def flood(pair: BenchPair, key: str) -> Generator[None]:
    """Have a key ask for as many turns as it can while the block runs."""
    with subprocess.Popen(load_command(pair, FLOOD, key=key), stdout=subprocess.DEVNULL) as child:
        try:
            yield
        finally:
            child.kill()
