"""Processes that stand still (SIGSTOP), one at a time and two at once, under many even streams.

python -m tests.chaos.silence [--seconds 5,35,120] [--targets chat_shell_1,...] [--pairs] [--streams 40] [--calm 8]
                              [--bound 15] [--forked] [--logs FOLDER]

Each case freezes its targets for so long, lets them go on, and waits a little. Every turn ends or goes on within 15 s,
and what does not need the frozen ones keeps its pace. At the end stand the checks of the chaos run.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import quantiles

from tests.chaos.__main__ import keep_logs
from tests.chaos.checks import violations
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.load import new_world
from tests.chaos.records import Resources, Violation
from tests.chaos.resources import measured
from tests.chaos.run import END_SECONDS, gathered, tell
from tests.chaos.steady import LOOK_SECONDS, Course, steady_streams

MODEL = "model"
TARGETS = ("chat_shell_1", "backend_1", "valkey", "postgres", MODEL)
SHARED = {"valkey", "postgres", MODEL}
SECONDS = (5.0, 35.0, 120.0)
STREAMS = 40
BOUND_SECONDS = 15.0
"""Within this every turn ends or goes on, counted from the silence; a client looks elsewhere in between."""

CALM_SECONDS = 8.0
"""Before the first case, and behind each."""


@dataclass
class Case:
    """Targets, how long they stand still, and what the clients lived through; instants by the monotonic clock."""

    targets: tuple[str, ...]
    seconds: float
    begins: float = 0.0
    ends: float = 0.0
    worst_seconds: float = 0.0
    late: list[str] = field(default_factory=list[str])
    pace_seconds: float | None = None
    ended: Counter[str] = field(default_factory=Counter[str])

    @property
    def name(self) -> str:
        """How it is called in the table."""
        return "+".join(self.targets)


@dataclass(frozen=True)
class Load:
    """How many streams run, how long it is calm between the cases, and how long a turn may be silent."""

    streams: int = STREAMS
    calm_seconds: float = CALM_SECONDS
    bound_seconds: float = BOUND_SECONDS
    is_forked: bool = False


def cases_of(targets: Sequence[str], seconds: Sequence[float], *, pairs: bool) -> Iterator[Case]:
    """Yield each target alone, and with `pairs` each two of them, for each length."""
    alone = [(target,) for target in targets]
    for chosen in (*alone, *(combinations(targets, 2) if pairs else ())):
        yield from (Case(chosen, length) for length in seconds)


async def run_cases(directory: Path, cases: list[Case], load: Load) -> list[Violation]:
    """Play all cases under one load, fill them in, and return what the checks of chaos find.

    A case of nothing that stands still comes first, to compare with.
    """
    async with running_cluster(directory, with_disk=False, is_forked=load.is_forked) as (cluster, watch):
        world, courses = await new_world(cluster, int(time.time())), list[Course]()
        before: Resources = await measured(cluster)
        async with steady_streams(world, load.streams, courses):
            while len(courses) < load.streams or not all(one.turn.response_id for one in courses):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
            calm = Case(("nothing",), load.calm_seconds, time.monotonic())
            await asyncio.sleep(load.calm_seconds)
            calm.ends = time.monotonic()
            for case in cases:
                await play(cluster, case)
                tell(f"{case.name} stood still for {case.seconds:g} s; {len(courses)} turns so far")
                await asyncio.sleep(load.calm_seconds)
            await watch.all_ready(END_SECONDS)
        evidence = await gathered(cluster, world, watch, before)
        homes = homes_of(cluster)
        cases.insert(0, calm)
        for case in cases:
            judge(case, courses, homes, load.bound_seconds)
        return [one for one in violations(evidence) if one.check != "resources"]


async def play(cluster: Cluster, case: Case) -> None:
    """Freeze the targets, and let them go on; the model stands still behind a connection that passes nothing."""
    link = cluster.links["to_model"]
    frozen = [cluster.members[name] for name in case.targets if name != MODEL]
    case.begins = time.monotonic()
    try:
        for member in frozen:
            member.freeze()
        if MODEL in case.targets:
            link.silence()
        await asyncio.sleep(case.seconds)
    finally:
        for member in frozen:
            member.thaw()
        if MODEL in case.targets:
            await link.heal()
        case.ends = time.monotonic()


def homes_of(cluster: Cluster) -> dict[str, set[str]]:
    """Return which chat_shells have logged anything of each turn."""
    homes: dict[str, set[str]] = {}
    for name, log in cluster.logs().items():
        if name.startswith("chat_shell"):
            for line in log.splitlines():
                _, found, rest = line.partition('"turn_id": "')
                if found:
                    homes.setdefault(rest.partition('"')[0], set()).add(name)
    return homes


def judge(case: Case, courses: Iterable[Course], homes: dict[str, set[str]], bound_seconds: float) -> None:
    """Say how long the longest silence was, and how even the pace of those who need none of the frozen ones."""
    gaps: list[float] = []
    until = case.ends + bound_seconds
    for course in courses:
        worst = max(course.silences_in(case.begins, until), default=0.0)
        case.worst_seconds = max(case.worst_seconds, worst)
        if worst > bound_seconds:
            case.late.append(f"{course.turn.key} {course.turn.response_id} {worst:.1f} s")
        if worst and course.turn.is_ended:
            case.ended.update(event.status for reading in course.turn.readings if (event := reading.last_event))
        if is_apart(case, course, homes):
            gaps += course.delta_gaps_in(case.begins, case.ends)
    case.pace_seconds = quantiles(gaps, n=100)[98] if len(gaps) > 100 else None


def is_apart(case: Case, course: Course, homes: dict[str, set[str]]) -> bool:
    """Whether neither the turn nor its readers need what is frozen: only another replica's turns do not."""
    needed = homes.get(course.turn.response_id, set()) | {reading.replica for reading in course.turn.readings}
    return course.turn.response_id in homes and not needed & set(case.targets) and not SHARED & set(case.targets)


def rendered(cases: Iterable[Case], found: Iterable[Violation]) -> str:
    """Return the table for people."""
    lines = [f"{'stood still':28} {'s':>4} {'longest silence':>16} {'p99 of the rest':>16}  ends"]
    for case in cases:
        pace = "none" if case.pace_seconds is None else f"{1000 * case.pace_seconds:.0f} ms"
        ends = ", ".join(f"{number} {status}" for status, number in sorted(case.ended.items()))
        lines.append(f"{case.name:28} {case.seconds:4g} {case.worst_seconds:14.1f} s {pace:>16}  {ends}")
        lines += [f"! late: {one}" for one in case.late[:4]]
    return "\n".join([*lines, *(f"! {one.check} {' '.join(one.ids)}: {one.told}" for one in found)])


def main(arguments: list[str]) -> int:
    """Run the cases and print the table; 1 when a turn was late or a promise broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.silence")
    parser.add_argument("--seconds", default=",".join(f"{one:g}" for one in SECONDS))
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--pairs", action="store_true", help="two at once, too")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--calm", type=float, default=CALM_SECONDS, help="seconds between the cases")
    parser.add_argument("--bound", type=float, default=BOUND_SECONDS, help="seconds for which a turn may be silent")
    parser.add_argument("--forked", action="store_true", help="starts are forked, which takes less time")
    parser.add_argument("--logs", type=Path, default=None, help="where the services' logs are kept")
    chosen = parser.parse_args(arguments)
    load = Load(chosen.streams, chosen.calm, chosen.bound, is_forked=chosen.forked)
    lengths = [float(one) for one in chosen.seconds.split(",")]
    cases = list(cases_of(chosen.targets.split(","), lengths, pairs=chosen.pairs))
    with tempfile.TemporaryDirectory(prefix="ballast-silence-") as directory:
        found = asyncio.run(run_cases(Path(directory), cases, load))
        if chosen.logs is not None:
            keep_logs(Path(directory), chosen.logs)
    sys.stdout.write(f"{rendered(cases, found)}\n")
    return int(bool(found) or any(case.late for case in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
