"""`make leak-test`: hostile models against the real pair. Prints tables, writes var/leaks/*.json.

python -m tests.leaks [--trials N] [--no-corpora] [--embedder none|fake|local] [--grade open|strict] [--way WAY]

With `--way` (`grpc`, `http`, `grpc-postgres` or `http-postgres`; several times) these ways alone are played. With
`--grade strict` the models answer in codes, and what is released may hold nothing else.

It ends with 1 when something got out, too few trials counted or the honest control missed a bar.
"""

import argparse
import asyncio
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import chain, cycle, islice, product
from math import ceil
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from tests.leaks.corpus.reading import Attack, attacks
from tests.leaks.embedding import EmbedderKind
from tests.leaks.forgeries import play_forgeries, play_role_changes
from tests.leaks.honest import honest_figures, missed_bars, rendered
from tests.leaks.hostile.stub import Stub
from tests.leaks.hostile.stubs import HANG, STUBS
from tests.leaks.lookups import play_lookups
from tests.leaks.pair import Way
from tests.leaks.results import Results
from tests.leaks.runner import plan, play_until, staged
from tests.leaks.strangers import __main__ as strangers
from tests.leaks.trials import SEARCHES_A_TURN
from tests.servers.postgres import PostgresServer

RESULTS = Path("var/leaks")
WANTED_TRIALS = 7_500
HANGING_TRIALS_A_CLASS = 2
LONG_TIMEOUT_SECONDS, SHORT_TIMEOUT_SECONDS = 20.0, 1.0
MOST_ROUNDS = 3
PROTOCOLS: tuple[Literal["grpc", "http"], ...] = ("grpc", "http")
WAYS = tuple(product(PROTOCOLS, (False, True)))
"""The protocols, with SQLite or PostgreSQL behind; each way has an equal share of the trials."""

NAMED = tuple(f"{protocol}{'-postgres' * is_postgres}" for protocol, is_postgres in WAYS)

WAYS_AT_ONCE = max(2, os.cpu_count() or 1)
"""Each keeps somewhat more than one core busy, the gate's."""


def playable() -> list[Attack]:
    """Return the cases that are played by a restricted member from the beginning."""
    return [case for case in attacks() if case.attack_class != "role_change"]


def one_case_a_class(cases: list[Attack]) -> list[Attack]:
    """Return the last case of each class, by turns in English and in Chinese where there is one in both."""
    by_class: dict[str, dict[str, Attack]] = {}
    for case in cases:
        by_class.setdefault(case.attack_class, {})[case.language] = case
    wanted = cycle(("en", "zh"))
    return [found.get(next(wanted)) or next(iter(found.values())) for found in by_class.values()]


async def hostile_trials(directory: Path, wanted: int, way: Way, *, with_corpora: bool) -> Results:
    """Play all cases in turns, with all models in turns, until enough trials count."""
    cases, dice = playable(), random.Random(str(way))
    async with staged(directory, cases, LONG_TIMEOUT_SECONDS, way, with_corpora=with_corpora) as stage:
        visits = islice(plan(stage, cases, STUBS, dice), MOST_ROUNDS * wanted // SEARCHES_A_TURN + 1)
        hanging = stage.planned(cases[0], 0, [HANG])
        await play_until(stage, chain([hanging], visits), wanted, RESULTS / f"{way}.json")
        searches = zip(cases, batches(dice.sample(STUBS, len(STUBS)), SEARCHES_A_TURN), strict=False)
        await play_lookups(stage, [stage.planned(case, 0, hand) for case, hand in searches])
        await play_forgeries(stage, cases)
        await play_role_changes(stage, [case for case in attacks() if case.attack_class == "role_change"])
        return stage.results


def batches(stubs: Sequence[Stub], size: int) -> list[Sequence[Stub]]:
    """Split the models into hands of this size."""
    return [stubs[at : at + size] for at in range(0, len(stubs), size)]


async def hanging_trials(directory: Path, way: Way) -> Results:
    """Let the secondary model hang with a short timeout, for a case of each class."""
    cases = one_case_a_class(playable())
    async with staged(directory, cases, SHORT_TIMEOUT_SECONDS, way) as stage:
        visits = [stage.planned(case, 0, [HANG] * HANGING_TRIALS_A_CLASS) for case in cases]
        await play_until(stage, visits, len(cases) * HANGING_TRIALS_A_CLASS)
        return stage.results


async def all_trials(
    place: Path, wanted: int, kind: Way, *, with_corpora: bool, chosen: Sequence[str] = NAMED
) -> Results:
    """Play the share of each of the chosen ways, some at once; the hanging model at the first and the last of all.

    Embedder and grade are those of `kind`.
    """
    began, turns = time.monotonic(), asyncio.Semaphore(WAYS_AT_ONCE)
    with closing(PostgresServer()) as server:
        server.start()

        async def play(at: int) -> Results:
            protocol, is_postgres = WAYS[at]
            urls = [server.url(server.new_database()) if is_postgres else "" for _ in range(2)]
            ways = [kind._replace(protocol=protocol, postgres_url=url) for url in urls]
            results, trials = Results(), ceil(wanted / len(chosen))
            async with turns:
                results.add(await hostile_trials(place / str(at), trials, ways[0], with_corpora=with_corpora))
                if at in (0, len(WAYS) - 1):
                    results.add(await hanging_trials(place / f"hanging {at}", ways[1]))
            return results

        async with asyncio.TaskGroup() as group:
            playing = [group.create_task(play(at)) for at, name in enumerate(NAMED) if name in chosen]
    results = Results()
    for task in playing:
        results.add(task.result())
    results.seconds = time.monotonic() - began
    return results


def exit_code(results: Results, wanted: int, figures: dict[str, Any]) -> int:
    """Return 0 when nothing got out in as many trials as were wanted and the honest control met its bars."""
    missed = missed_bars(figures)
    sys.stdout.writelines(f"bar missed: {line}\n" for line in missed)
    return 1 if results.failures or len(results.counted) < wanted or missed else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.leaks")
    parser.add_argument("--trials", type=int, default=WANTED_TRIALS)
    parser.add_argument("--no-corpora", action="store_true")
    kinds = get_args(EmbedderKind)
    parser.add_argument("--embedder", choices=kinds, default="none", help="whose vectors searches go by, beside words")
    parser.add_argument("--grade", choices=("open", "strict"), default="open")
    parser.add_argument("--way", action="append", choices=NAMED)
    chosen = parser.parse_args(arguments)
    kind = Way(embedder=chosen.embedder, grade=chosen.grade)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of callers that leave
    with tempfile.TemporaryDirectory(prefix="ballast-leaks-") as directory:
        trials = all_trials(
            Path(directory), chosen.trials, kind, with_corpora=not chosen.no_corpora, chosen=chosen.way or NAMED
        )
        results = asyncio.run(trials)
    if chosen.grade == "strict":
        results.write(RESULTS / "trials_strict.json")
        sys.stdout.write(f"\n{results.rendered()}\n")
        return exit_code(results, chosen.trials, {})
    results.write(RESULTS / "trials.json")
    figures = honest_figures()
    (RESULTS / "honest.json").write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    sys.stdout.write(f"\n{results.rendered()}\n\n{rendered(figures)}\n\nstrangers' cases\n")
    strangers.main(is_verbose=False)
    return exit_code(results, chosen.trials, figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
