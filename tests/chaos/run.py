"""One run: a warm load, the same under faults, then everything is read and checked."""

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import audit
from tests.chaos.checks import grown, violations, without_lost
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.faults import Faults
from tests.chaos.load import new_world, under_load
from tests.chaos.members import Watch
from tests.chaos.records import Evidence, Resources
from tests.chaos.report import NEVER_TRIED, RunReport, excerpts, outcomes_of, turns_of
from tests.chaos.resources import measured
from tests.chaos.schedule import make_schedule
from tests.chaos.world import World

TALKERS = 6
WARM_SECONDS = (6.0, 20.0)
WARM_SHARE = 0.1
CALM_SECONDS = 5.0
CALM_SHARE = 0.05
"""Of the faults' time, at most `CALM_SECONDS`: before the faults without a load, and after them with it."""

QUIET_SECONDS = 5.0
"""Within this after the last call nothing is held any more."""

LOOK_SECONDS = 0.5

END_SECONDS = 45.0
"""Within this after the last fault every turn has ended: a turn's deadline and half of it for the takeover."""


@dataclass(frozen=True)
class Plan:
    """What to run."""

    seed: int
    seconds: float
    talkers: int = TALKERS
    with_disk: bool = True
    with_failover: bool = True
    is_pooled: bool = False
    is_forked: bool = False

    @property
    def calm_seconds(self) -> float:
        """How long the time without faults lasts, each time."""
        return min(self.seconds * CALM_SHARE, CALM_SECONDS)


async def run_once(directory: Path, plan: Plan) -> RunReport:
    """Run one seed and return its report; the services leave their logs in `directory`."""
    started = running_cluster(directory, with_disk=plan.with_disk, is_forked=plan.is_forked, is_pooled=plan.is_pooled)
    async with started as (cluster, watch):
        has_disk = cluster.disk is not None
        schedule = make_schedule(plan.seed, plan.seconds, with_disk=has_disk, with_failover=plan.with_failover)
        world, faults = await new_world(cluster, plan.seed), Faults(cluster)
        async with under_load(world, plan.talkers):
            await asyncio.sleep(min(max(plan.seconds * WARM_SHARE, WARM_SECONDS[0]), WARM_SECONDS[1]))
        await asyncio.sleep(plan.calm_seconds)
        before = await measured(cluster)
        tell(f"seed {plan.seed}: warm, {len(world.turns)} turns so far; {len(schedule)} faults begin")
        async with under_load(world, plan.talkers):
            await faults.play(schedule)
            await watch.all_ready(END_SECONDS)
            await asyncio.sleep(plan.calm_seconds)
            tell("all faults are undone; waiting for the ends of all calls")
        tell(f"reading {len(world.turns)} turns")
        evidence = without_lost(await gathered(cluster, world, watch, before), faults.lost)
        missed = () if cluster.disk else (f"a full or standing disk of PostgreSQL: {cluster.why_no_disk}",)
        report = RunReport(
            plan.seed, plan.seconds, schedule, played=dict(faults.played), untried=(*missed, *NEVER_TRIED)
        )
        fill(report, evidence, cluster, world)
        report.refused_starts = dict(watch.refused_starts)
        return report


def fill(report: RunReport, evidence: Evidence, cluster: Cluster, world: World) -> None:
    """Write into a report what was counted and found."""
    report.violations = violations(evidence)
    report.turns = turns_of(evidence)
    report.excerpts = excerpts(report.violations, cluster.logs())
    report.answers = dict(world.tally.answers)
    report.slow = world.tally.slow
    report.outcomes = dict(outcomes_of(evidence))
    report.warnings = dict(audit.warnings_by_event(list(audit.log_lines(cluster))))
    report.excused = [death for death in evidence.deaths if death.excuse]
    report.before, report.after = evidence.before, evidence.after


def tell(line: str) -> None:
    """Say on standard error where the run is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


async def gathered(cluster: Cluster, world: World, watch: Watch, before: Resources) -> Evidence:
    """Read everything; the faults are over."""
    reading = audit.Audit(cluster, world)
    try:
        unfinished = await reading.unfinished(END_SECONDS)
        stored, found, log = await reading.stored(), await reading.found(), await reading.log()
        stuck = await reading.stuck()
    finally:
        await reading.close()
    lines = list(audit.log_lines(cluster))
    return Evidence(
        turns=world.turns,
        stored=stored,
        unfinished=unfinished,
        tool_runs=audit.tool_runs(lines),
        log=log,
        prompts=audit.sent_prompts(cluster),
        drift=audit.drifted(lines),
        registers=world.registers,
        found=found,
        deaths=watch.deaths,
        server_errors=world.tally.server_errors,
        hung=world.hung,
        stuck=stuck,
        before=before,
        after=await come_back(cluster, before),
    )


async def come_back(cluster: Cluster, before: Resources) -> Resources:
    """Measure until everything is near what it was, or has had the time for that."""
    after = await measured(cluster)
    give_up_at = time.monotonic() + QUIET_SECONDS
    while any(grown(before, after)) and time.monotonic() < give_up_at:
        await asyncio.sleep(LOOK_SECONDS)
        after = await measured(cluster)
    return after
