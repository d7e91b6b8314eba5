"""`make chaos`: real processes under load and a seeded schedule of faults; prints counts and violations.

python -m tests.chaos [--seconds 600] [--seed N | --seeds a,b,c] [--talkers N] [--no-disk] [--no-failover] [--pooled]

Writes var/chaos/seed-*.json, the services' logs beside it, and ends with 1 when a promise was broken.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.run import TALKERS, Plan, run_once

RESULTS = Path("var/chaos")


def main(arguments: list[str]) -> int:
    """Run all seeds, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None, help="by default one that no run had before")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--talkers", type=int, default=TALKERS, help="conversations at a time")
    parser.add_argument("--no-disk", action="store_true")
    parser.add_argument("--no-failover", action="store_true", help="no commit that was acknowledged is lost")
    parser.add_argument("--pooled", action="store_true", help="behind pgbouncer in transaction mode, Debian's program")
    parser.add_argument("--forked", action="store_true", help="starts are forked, which takes less time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    seeds = [int(seed) for seed in chosen.seeds.split(",") if seed] or [
        int(time.time()) if chosen.seed is None else chosen.seed
    ]
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of connections that break
    is_broken = False
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="ballast-chaos-") as directory:
            plan = Plan(
                *(seed, chosen.seconds, chosen.talkers, not chosen.no_disk, not chosen.no_failover),
                is_pooled=chosen.pooled,
                is_forked=chosen.forked,
            )
            report = asyncio.run(run_once(Path(directory), plan))
            keep_logs(Path(directory), chosen.results / f"seed-{seed}")
        sys.stdout.write(f"{report.rendered()}\nwritten to {report.write(chosen.results)}\n")
        sys.stdout.flush()
        is_broken = is_broken or bool(report.violations)
    return int(is_broken)


def keep_logs(directory: Path, place: Path) -> None:
    """Copy the services' logs to where they outlive the run."""
    place.mkdir(parents=True, exist_ok=True)
    for log in directory.glob("*/*.log"):
        shutil.copy(log, place / f"{log.parent.name}.log")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
