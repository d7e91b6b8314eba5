"""Simulate seeds, and print what each of them broke, with its history.

python -m tests.simulation [--seeds 20] [--first 1] [--seconds 600] [--without NAME] [--history]

Ends with 1 when a promise was broken. The same seed tells the same history, whatever the machine does.
"""

import argparse
import gc
import sys
import time

from tests.simulation.mends import MENDS, PLANTED, without
from tests.simulation.run import SECONDS, Outcome, simulate

LINES_SHOWN = 60


def main(arguments: list[str]) -> int:
    """Run the seeds, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="simulated time")
    parser.add_argument("--without", default="", help=f"one of: {', '.join((*MENDS, *PLANTED))}")
    parser.add_argument("--history", action="store_true", help="print the history of every seed, whole")
    chosen = parser.parse_args(arguments)
    gc.disable()  # it would look through all that a simulation holds; each seed is cleared away behind its end
    broken, began = 0, time.process_time()
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        with without(chosen.without):
            outcome = simulate(seed, chosen.seconds)
        broken += bool(outcome.violations)
        _tell(outcome, is_whole=chosen.history)
        gc.collect()
    seconds = time.process_time() - began
    told = f"{chosen.seeds} seeds, {broken} with violations, {seconds / max(chosen.seeds, 1):.2f} s of CPU a seed"
    sys.stdout.write(f"{told}\n")
    return int(broken > 0)


def _tell(outcome: Outcome, *, is_whole: bool) -> None:
    if not outcome.violations and not is_whole:
        return
    lines = [f"seed {outcome.seed}: {outcome.turns} turns, {len(outcome.violations)} violations"]
    lines += [f"  {one.check} {' '.join(one.ids)}: {one.told}" for one in outcome.violations]
    shown = outcome.history if is_whole else _about(outcome)
    sys.stdout.write("\n".join([*lines, *shown]) + "\n")
    sys.stdout.flush()


def _about(outcome: Outcome) -> list[str]:
    """Return the faults, and what the history tells of the turns that were broken."""
    keys = {name for one in outcome.violations for name in one.ids if name}
    about = [line for line in outcome.history if " fault " in line or any(f" {key} " in f"{line} " for key in keys)]
    return about if len(about) <= LINES_SHOWN * 4 else about[: LINES_SHOWN * 4]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
