"""`python -m tests.leaks.context [NAME …]`: play the context cases against the real pair and print what got out."""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.leaks.context.cases import Case, context_cases
from tests.leaks.context.judging import Fault, faults_of, is_released
from tests.leaks.context.play import Played, Player
from tests.leaks.context.staging import context_stage
from tests.leaks.pair import DEFAULT_WAY, Way

NARROW = ("skill_unlabelled",)


class Outcome(NamedTuple):
    """What became of one case."""

    played: Played
    faults: tuple[Fault, ...]


def is_narrow(case: Case) -> bool:
    """Whether a case wants small budgets or unlabelled skills."""
    return "budget" in case.world or case.name in NARROW


async def play_cases(
    directory: Path, cases: Sequence[Case], way: Way = DEFAULT_WAY, *, is_gated: bool = True
) -> list[Outcome]:
    """Play cases one after another, each on the stage that it wants."""
    outcomes: list[Outcome] = []
    for narrow in (False, True):
        fitting = [case for case in cases if is_narrow(case) == narrow]
        if not fitting:
            continue
        async with context_stage(directory / str(narrow), way, is_narrow=narrow, is_gated=is_gated) as stage:
            for number, case in enumerate(fitting):
                played = await Player(stage, case, number).play()
                outcomes.append(Outcome(played, tuple(faults_of(played, stage))))
                sys.stderr.write(line_of(outcomes[-1]))
    return outcomes


def line_of(outcome: Outcome) -> str:
    """Return a line on a case."""
    played, faults = outcome
    restricted = [asked for asked in played.asked if not asked.is_full]
    results = [result for asked in restricted for result in asked.results]
    searched, calls = sum(asked.secondary_calls for asked in restricted), sum(map(is_released, results))
    what = Counter((fault.sink, fault.leak.kind) for fault in faults)
    told = f" LEAK {dict(what)} {faults[0].leak.text[:90]!r}" if faults else ""
    refused = f" refusals {played.refusals}" if played.refusals else ""
    return f"{played.case.name}: {len(restricted)} turns, {searched} replies, {calls} released{told}{refused}\n"


def main(names: Sequence[str]) -> int:
    cases = [case for case in context_cases() if not names or case.name in names or case.kind in names]
    with tempfile.TemporaryDirectory(prefix="ballast-context-") as directory:
        outcomes = asyncio.run(play_cases(Path(directory), cases))
    turns = sum(not asked.is_full for outcome in outcomes for asked in outcome.played.asked)
    replies = sum(asked.secondary_calls for one in outcomes for asked in one.played.asked)
    leaked = [outcome.played.case.name for outcome in outcomes if outcome.faults]
    sys.stdout.write(f"{len(leaked)} of {len(outcomes)} cases leak; {turns} restricted turns, {replies} replies\n")
    sys.stdout.writelines(f"  {name}\n" for name in leaked)
    return 1 if leaked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
