"""Deltas a second, time to the first delta, live streams, short turns: through the pair and, beside it, direct."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.bare_relay import relay_microseconds
from tests.bench.fake_model import WORD
from tests.bench.figures import Figure, percentile
from tests.bench.pair import ADMIN_KEY, BenchPair
from tests.bench.stores import Store

STREAMS = 50
TURNS = 500
ROUNDS = 100
CANCELS = STOPS = 20
DIRECT_MARKER = '"content":" ballast"'
CHAT_MARKER = '"delta":{"content":"'
CHAT_SHARE = 0.9
"""Chat Completions must reach this share of the deltas a second through Responses."""

RATE = 50
LIVE_DELTAS = 250
LIVE_FIRST, LIVE_MOST, LIVE_STEP = 40, 480, 10
LIVE_TRIES = 2
LAG_MILLISECONDS = 100
SHORT_TURNS, SHORT_STREAMS, MANY_TURNS = 1_500, 32, 10_000
PACED_GOALS = {50: 90, 200: 50}
MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Flow:
    """A load: so many streams at once and in all, each of so many deltas, so many a second (0: as fast as they go)."""

    streams: int
    total: int
    deltas: int = 200
    rate: int = 0

    @property
    def asked(self) -> str:
        """What the request says to the fake model."""
        return f"go [deltas {self.deltas} delay {1000 // self.rate if self.rate else 0}]"


SILENT = "go [deltas 2 delay 600000]"
"""The fake model says one word, and the next one after ten minutes."""

LEFT: dict[str, tuple[str, dict[str, Any]]] = {
    "completions": ("/v1/chat/completions", {"messages": [{"role": "user", "content": SILENT}]}),
    "completions that are not stored": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": SILENT}], "store": False},
    ),
    "responses that are not stored": ("/v1/responses", {"input": SILENT, "store": False}),
}


@dataclass(frozen=True)
class Goals:
    """What a store has to reach."""

    deltas_a_second: float
    first_delta_milliseconds: float
    live_streams: float


GOALS = {"sqlite": Goals(20_000, 5, 150), "postgres": Goals(15_000, 7, 115)}


def load_command(
    pair: BenchPair,
    flow: Flow,
    *,
    direct: bool = False,
    chat: bool = False,
    key: str = ADMIN_KEY,
    said: str | None = None,
    headers: Sequence[str] = (),
    varied: Sequence[str] = (),
) -> list[str]:
    """Return the command of the load generator.

    `direct` asks the model without the pair, `chat` the pair through Chat Completions, else through Responses. `said`
    is what it says in place of what the flow asks for.
    """
    body: dict[str, Any] = {"model": "bench", "stream": True}
    asked = flow.asked if said is None else said
    messages = [{"role": "user", "content": asked}]
    body |= {"messages": messages} if direct or chat else {"store": True, "input": asked}
    path = pair.directory / f"body-{'direct' if direct else 'chat' if chat else 'pair'}-{len(asked)}.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    host = pair.model_url if direct else pair.backend_url
    url = f"{host}/v1/chat/completions" if direct or chat else f"{host}/v1/responses"
    command = [sys.executable, "-m", "tests.bench.load", "--url", url, "--body", str(path)]
    for header in (f"Authorization: Bearer {key}", *headers):
        command += ["--header", header]
    for each in varied:
        command += ["--varied", each]
    command += ["--streams", str(flow.streams), "--total", str(flow.total), "--ramp-seconds", "1" if flow.rate else "0"]
    return command + (["--first-marker", DIRECT_MARKER if direct else CHAT_MARKER] if direct or chat else [])


def load(
    pair: BenchPair,
    flow: Flow,
    *,
    direct: bool = False,
    chat: bool = False,
    key: str = ADMIN_KEY,
    varied: Sequence[str] = (),
) -> dict[str, Any]:
    """Run the load generator as a process of its own and return what it saw; see `load_command`."""
    command = load_command(pair, flow, direct=direct, chat=chat, key=key, varied=varied)
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    seen: dict[str, Any] = json.loads(finished.stdout)
    if seen["ended"] != flow.total:
        broken = f"{flow.total - seen['ended']} of {flow.total} streams broke: {seen['errors']}"
        raise RuntimeError(f"{broken}\n{pair.backend.log_tail()}")
    return seen


def stream_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Measure unpaced streams; a delta is one of the model's, however it was grouped on the way."""
    flow = Flow(STREAMS, TURNS)
    load(pair, Flow(STREAMS, STREAMS))
    direct = load(pair, flow, direct=True)
    with measured_cost(pair, store, f"{STREAMS} unpaced streams") as cost:
        through = load(pair, flow)
    load(pair, Flow(STREAMS, STREAMS), chat=True)
    with measured_cost(pair, store, f"{STREAMS} unpaced streams, chat completions") as chat_cost:
        through_chat = load(pair, flow, chat=True)
    rate, chat, bare = (flow.total * flow.deltas / seen["wall_seconds"] for seen in (through, through_chat, direct))
    goal = GOALS[store.name].deltas_a_second
    name = f"deltas a second, {STREAMS} unpaced streams"
    return [
        Figure(name, rate, "/s", goal, at_least=True, direct=bare),
        Figure(f"{name}, chat completions", chat, "/s", CHAT_SHARE * rate, at_least=True, direct=bare),
        *cost("delta", flow.total * flow.deltas),
        *chat_cost("delta", flow.total * flow.deltas),
    ]


Cost = Callable[..., list[Figure]]


@contextmanager
def measured_cost(pair: BenchPair, store: Store, scale: str) -> Generator[Cost]:
    """Measure what happens inside; the function that it lends makes the figures afterwards.

    The CPU that a service uses says something on a busy machine, too, where seconds do not.
    """
    sessions, before, spent = store.sessions_opened(), pair.cpu_seconds(), dict[str, float]()

    def figures(what: str, count: int, goal: float | None = None) -> list[Figure]:
        made = [
            Figure(f"CPU a {what}, {scale}, {service}", seconds / count * MICROSECONDS, "µs", goal)
            for service, seconds in spent.items()
        ]
        after = store.sessions_opened()
        if sessions is None or after is None:
            return made
        return [*made, Figure(f"database connections opened, {scale}", after - sessions, "")]

    yield figures
    spent |= {service: after - before[service] for service, after in pair.cpu_seconds().items()}


def first_delta_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Measure one stream at a time, direct and through the pair in turn."""
    flow = Flow(1, ROUNDS)
    load(pair, flow)
    direct, through = load(pair, flow, direct=True), load(pair, flow)
    return [
        Figure(
            f"added time to the first delta, one stream, {name}",
            through[key] - direct[key],
            "ms",
            goal,
            direct=direct[key],
        )
        for name, key, goal in (
            ("p50", "first_delta_p50_ms", GOALS[store.name].first_delta_milliseconds),
            ("p99", "first_delta_p99_ms", None),
        )
    ]


def live_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Find the largest number of paced streams that are delivered in time."""
    most = largest(lambda streams: _lag_milliseconds(pair, streams) <= LAG_MILLISECONDS)
    name = f"live streams at {RATE} deltas/s with an added gap p99 <= {LAG_MILLISECONDS} ms"
    return [Figure(name, most, "", GOALS[store.name].live_streams, at_least=True)]


def paced_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Measure what a delta costs when nothing can be grouped, beside a bare relay of the same deltas."""
    load(pair, Flow(1, 1))
    return [figure for streams, goal in PACED_GOALS.items() for figure in _paced_figures(pair, store, streams, goal)]


def _paced_figures(pair: BenchPair, store: Store, streams: int, goal: float) -> list[Figure]:
    flow, scale = Flow(streams, streams, LIVE_DELTAS, RATE), f"{streams} streams at {RATE} deltas/s"
    with measured_cost(pair, store, scale) as cost:
        load(pair, flow)
    each = cost("delta", flow.total * flow.deltas)
    both = sum(figure.value for figure in each if figure.unit == "µs")
    name = f"CPU a delta, {scale}, both services (direct: a bare relay)"
    return [*each, Figure(name, both, "µs", goal, direct=relay_microseconds(streams))]


def largest(fits: Callable[[int], bool]) -> int:
    """Return the largest number of streams that fits, by doubling and then halving steps; 0 when none does.

    A number that does not fit is tried again, because one hiccup of a shared machine is no limit of ours.
    """

    def holds(number: int) -> bool:
        return any(fits(number) for _ in range(LIVE_TRIES))

    good, bad = 0, LIVE_FIRST
    while bad <= LIVE_MOST and holds(bad):
        good, bad = bad, bad * 2
    bad = min(bad, LIVE_MOST + LIVE_STEP)
    while bad - good > LIVE_STEP:
        middle = (good + bad) // 2 // LIVE_STEP * LIVE_STEP or LIVE_STEP
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _lag_milliseconds(pair: BenchPair, streams: int) -> float:
    flow = Flow(streams, streams, LIVE_DELTAS, RATE)
    return load(pair, flow)["gap_p99_ms"] - load(pair, flow, direct=True)["gap_p99_ms"]


def turn_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Measure short stored turns, then the memory that ten thousand of them leave behind."""
    flow = Flow(SHORT_STREAMS, SHORT_TURNS, deltas=1)
    load(pair, flow)
    direct = load(pair, flow, direct=True)
    with measured_cost(pair, store, f"{SHORT_STREAMS} at once") as cost:
        through = load(pair, flow)
    rates = [flow.total / seen["wall_seconds"] for seen in (through, direct)]
    name = f"short turns a second, stored, {SHORT_STREAMS} at once"
    before = pair.memory_mb()
    load(pair, Flow(SHORT_STREAMS, MANY_TURNS, deltas=1))
    figures = [Figure(name, rates[0], "/s", 150, at_least=True, direct=rates[1])]
    figures += cost("short turn", flow.total)
    for service, memory in pair.memory_mb().items():
        figures.append(Figure(f"memory after {MANY_TURNS:,} turns, {service}", memory, "MB", 130))
        figures.append(Figure(f". grown by, {service}", (memory / before[service] - 1) * 100, "%", 5))
    return figures


def start_figures(pair: BenchPair, _store: Store) -> list[Figure]:
    """Tell how long each service took to be ready, and its memory then."""
    figures = [
        Figure(f"start to ready, {name}", pair.start_seconds[name], "s", 2) for name in ("backend", "chat_shell")
    ]
    return figures + [Figure(f"memory after start, {name}", mb, "MB", 130) for name, mb in pair.memory_mb().items()]


def cancel_figures(pair: BenchPair, _store: Store) -> list[Figure]:
    """Measure cancels."""
    return [cancel_p95(pair)]


def cancel_p95(pair: BenchPair) -> Figure:
    """Measure from the cancel request's sending to end of file at the fake model."""
    waits: list[float] = []
    with pair.client() as client:
        for _ in range(CANCELS):
            closed_before = closed_at(client, pair)
            body = {"model": "bench", "input": "endless", "background": True}
            response_id = client.post("/v1/responses", json=body).json()["id"]
            await_text(client, response_id)
            sent_at = time.time()
            assert client.post(f"/v1/responses/{response_id}/cancel").json()["status"] == "cancelled"
            waits.append(waited_milliseconds(client, pair, closed_before, sent_at))
    return Figure(f"p95 of {CANCELS} cancels, request to end of file at the model", percentile(waits, 0.95), "ms", 200)


def stop_figures(pair: BenchPair, _store: Store) -> list[Figure]:
    """Measure from a client's closing of its stream, while the model is silent, to end of file at the fake model."""
    figures: list[Figure] = []
    with pair.client() as client:
        for name, (path, body) in LEFT.items():
            waits = [left_milliseconds(client, pair, path, body) for _ in range(STOPS)]
            of = f"of {STOPS} closed streams, {name}, to end of file at the model"
            shares = {"p50": 0.5, "p95": 0.95, "most": 1.0}
            figures += [Figure(f"{key} {of}", percentile(waits, share), "ms", 1000) for key, share in shares.items()]
    return figures


def left_milliseconds(client: Any, pair: BenchPair, path: str, body: dict[str, Any]) -> float:
    """Ask for a stream, leave it behind its first delta, and return how long the model's lives on."""
    closed_before = closed_at(client, pair)
    with client.stream("POST", path, json={"model": "bench", "stream": True, **body}) as answer:
        for line in answer.iter_lines():
            if WORD in line:
                break
        left_at = time.time()
    return waited_milliseconds(client, pair, closed_before, left_at)


def closed_at(client: Any, pair: BenchPair) -> list[float]:
    """Return when clients of the fake model have closed streams before their ends."""
    return client.get(f"{pair.model_url}/closed").json()


def waited_milliseconds(client: Any, pair: BenchPair, before: Sequence[float], since: float) -> float:
    """Wait until one more stream of the fake model is closed; return how long after an instant that was."""
    while len(closed := closed_at(client, pair)) == len(before):
        time.sleep(0.005)
    return (closed[-1] - since) * 1000


def await_text(client: Any, response_id: str) -> None:
    """Return once the first piece of the answer has come."""
    with client.stream("GET", f"/v1/responses/{response_id}", params={"stream": "true"}) as answer:
        for line in answer.iter_lines():
            if "response.output_text.delta" in line:
                return
