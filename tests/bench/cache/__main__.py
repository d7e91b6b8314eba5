"""How much of each prompt providers would read from their caches, by layout.

    python -m tests.bench.cache [conversations [first seed]]

Prints a table, a plot and the bars, and writes var/bench/cache.{txt,png,json}. Without a first seed it takes a new
one and says which; the same numbers make the same conversations. Ends with 1 where a bar is missed.
"""

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cache.generator import conversation
from tests.bench.cache.measuring import Measured, lead_of_baselines, measured, missed_bars, totals
from tests.bench.cache.placements import (
    missed_placements,
    missed_reminders,
    placement_shares,
    reminder_shares,
    render_placements,
    render_reminders,
)
from tests.bench.cache.rendering import draw_bars, render_bars, render_table

RESULTS = Path("var/bench")
CONVERSATIONS = 200
BARS_MET = (
    "Bars met: durable >= 0.99 without a reset, never below a baseline within epochs, above each in total; "
    "anchored >= 0.98; with a reminder before breakpoints anchored >= 0.95 and classic >= 0.80, neither at more than "
    "0.40 of the price."
)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write."""
    count = int(arguments[0]) if arguments else CONVERSATIONS
    first_seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(10**6)
    print(f"{count} conversations, seeds from {first_seed}", flush=True)
    results = [measured(conversation(seed)) for seed in range(first_seed, first_seed + count)]
    placements = placement_shares(first_seed)
    reminders = reminder_shares(first_seed)
    missed = [*missed_bars(results), *missed_placements(placements), *missed_reminders(reminders)]
    text = _report(results, missed, f"{count} conversations, seeds from {first_seed}")
    text = f"{render_placements(placements)}\n\n{render_reminders(reminders)}\n\n{text}"
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "cache.txt").write_text(f"{text}\n", encoding="utf-8")
    (RESULTS / "cache.json").write_text(json.dumps(_rows(results), indent=1), encoding="utf-8")
    draw_bars(
        totals(result.shares for result in results),
        f"Read from the cache, of the most that could be: {count} conversations",
        RESULTS / "cache.png",
    )
    print(text)
    return 1 if missed else 0


def _report(results: Sequence[Measured], missed: Sequence[str], title: str) -> str:
    shares = totals(result.shares for result in results)
    with_reset = sum(bool(result.resets) for result in results)
    leads = [lead for lead in map(lead_of_baselines, results) if lead > 0]
    resets = f"Of these the calls that begin an epoch, in {with_reset} conversations; with them counted, "
    resets += f"a baseline is ahead of durable in {len(leads)} of those, by at most {max(leads, default=0):.4f}:"
    return "\n\n".join(
        [
            f"Tokens read from the cache, of the most that could be. {title}.",
            render_table(shares),
            resets,
            render_table(totals(result.at_resets for result in results)),
            render_bars(shares),
            "\n".join(["MISSED", *missed]) if missed else BARS_MET,
        ]
    )


def _rows(results: Sequence[Measured]) -> list[dict[str, object]]:
    return [
        {"simulator": simulator, "layout": layout, "share": share.value, "cached": share.cached, "most": share.maximum}
        for (simulator, layout), share in totals(result.shares for result in results).items()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
