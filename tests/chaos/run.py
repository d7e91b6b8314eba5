"""One run: a warm load, the same under faults, then everything is read and checked."""

import asyncio
from dataclasses import asdict, replace
from pathlib import Path

from tests.chaos import audit
from tests.chaos.checks import violations
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.faults import Faults
from tests.chaos.load import new_world, under_load
from tests.chaos.members import Watch
from tests.chaos.records import Evidence
from tests.chaos.report import NEVER_TRIED, RunReport, excerpts, outcomes_of
from tests.chaos.resources import measured
from tests.chaos.schedule import make_schedule
from tests.chaos.world import World

WARM_SECONDS = (6.0, 20.0)
WARM_SHARE = 0.1
QUIET_SECONDS = 5.0
CALM_SECONDS = 5.0
END_SECONDS = 45.0
"""Within this after the last fault every turn has ended: a turn's deadline and half of it for the takeover."""


async def run_once(directory: Path, seed: int, seconds: float, *, with_disk: bool) -> RunReport:
    """Run one seed and return its report."""
    async with running_cluster(directory, with_disk=with_disk) as (cluster, watch):
        schedule = make_schedule(seed, seconds, with_disk=cluster.disk is not None)
        world, faults = await new_world(cluster, seed), Faults(cluster)
        async with under_load(world):
            await asyncio.sleep(min(max(seconds * WARM_SHARE, WARM_SECONDS[0]), WARM_SECONDS[1]))
        await asyncio.sleep(QUIET_SECONDS)
        before = await measured(cluster)
        async with under_load(world):
            await faults.play(schedule)
            await watch.all_ready(END_SECONDS)
            await asyncio.sleep(CALM_SECONDS)
        evidence = replace(await gathered(cluster, world, watch), before=before)
        lines = list(audit.log_lines(cluster))
        found = violations(evidence)
        missed = () if cluster.disk else (f"a full or standing disk of PostgreSQL: {cluster.why_no_disk}",)
        assert evidence.after is not None
        return RunReport(
            seed=seed,
            seconds=seconds,
            schedule=schedule,
            played=faults.played,
            answers=world.tally.answers,
            outcomes=outcomes_of(evidence),
            warnings=audit.warnings_by_event(lines),
            refused_starts=watch.refused_starts,
            excused=[death for death in watch.deaths if death.excuse],
            violations=found,
            resources=[f"quiet before: {asdict(before)}", f"quiet after: {asdict(evidence.after)}"],
            untried=(*missed, *NEVER_TRIED),
            excerpts=excerpts(found, cluster.logs()),
        )


async def gathered(cluster: Cluster, world: World, watch: Watch) -> Evidence:
    """Read everything; the faults are over."""
    reading = audit.Audit(cluster, world)
    try:
        unfinished = await reading.unfinished(END_SECONDS)
        stored, kept, found = await reading.stored(), await reading.kept_turns(), await reading.found()
        stuck = await reading.stuck()
    finally:
        await reading.close()
    lines = list(audit.log_lines(cluster))
    await asyncio.sleep(QUIET_SECONDS)
    return Evidence(
        turns=world.turns,
        stored=stored,
        unfinished=unfinished,
        tool_runs=audit.tool_runs(lines),
        prompts=audit.sent_prompts(cluster),
        kept_turns=kept,
        drift=audit.drifted(lines),
        registers=world.registers,
        found=found,
        deaths=watch.deaths,
        server_errors=world.tally.server_errors,
        stuck=stuck,
        after=await measured(cluster),
    )
