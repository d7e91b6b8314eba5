"""`python -m tests.leaks.usefulness`: how useful codes are beside prose, by judges who do not know which is which.

    python -m tests.leaks.usefulness answers ANSWERS
    python -m tests.leaks.usefulness sheets ANSWERS SHEETS KEY [--seed TEXT]
    python -m tests.leaks.usefulness score KEY JUDGED…

ANSWERS holds a JSON object a line: `{"question", "open", "strict"}`, each answer as the main model was shown it.
`answers` writes those of an honest analyst to 24 questions, as the gate lets them out.
`sheets` writes one Markdown sheet with the two answers of each question as A and B, in an order drawn for each, and the
key of the orders, which judges must not see. A judge writes a line `N A x B y` for each question, with marks of 0 (of
no use) to 5 (as good as a consultant's note). `score` prints the sum of marks of `strict` over that of `open`, with the
range in which it lies when questions are drawn again, and ends with 1 where it is below the bar.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from tests.leaks.honest_answers import write_answers

BAR = 0.80
HIGHEST_MARK = 5
_DRAWN_AGAIN = 2_000
_MARKED = re.compile(r"(\d+)\s+A\s+([0-5])\s+B\s+([0-5])\s*")


class Marks(NamedTuple):
    """What a judge has given to the two answers to a question."""

    open: int
    strict: int


def write_sheet(answers: Sequence[Mapping[str, str]], seed: str) -> tuple[str, list[str]]:
    """Return the sheet, and for each question the grade that stands there as A."""
    dice, parts, key = random.Random(seed), list[str](), list[str]()
    for number, asked in enumerate(answers, start=1):
        first, second = dice.sample(["open", "strict"], 2)
        parts.append(f"## {number}\n\n{asked['question']}\n\n### A\n\n{asked[first]}\n\n### B\n\n{asked[second]}\n")
        key.append(first)
    return "\n".join(parts), key


def read_marks(text: str, key: Sequence[str]) -> list[Marks]:
    """Return the marks that a judge has given, question by question.

    Raises:
        ValueError: a line is none, or a question is left out or marked twice.
    """
    found: dict[int, Marks] = {}
    for line in filter(str.strip, text.splitlines()):
        read = _MARKED.fullmatch(line)
        number = int(read[1]) if read else 0
        if read is None or number in found or not 1 <= number <= len(key):
            raise ValueError(f"this is no line of marks: {line}")
        of_a, of_b = int(read[2]), int(read[3])
        found[number] = Marks(of_a, of_b) if key[number - 1] == "open" else Marks(of_b, of_a)
    if len(found) < len(key):
        raise ValueError(f"{len(key) - len(found)} questions are not marked")
    return [found[number] for number in sorted(found)]


def ratio(marks: Sequence[Marks]) -> float:
    """Return the sum of the marks of `strict` over that of `open`."""
    return sum(each.strict for each in marks) / max(sum(each.open for each in marks), 1)


def spread(marks: Sequence[Marks]) -> tuple[float, float]:
    """Return the range in which 95 % of the ratios lie when as many questions are drawn from these again."""
    dice = random.Random(len(marks))
    drawn = sorted(ratio(dice.choices(marks, k=len(marks))) for _ in range(_DRAWN_AGAIN))
    return drawn[_DRAWN_AGAIN // 40], drawn[-_DRAWN_AGAIN // 40]


def main(arguments: Sequence[str]) -> int:
    """Write a sheet, or read what judges have made of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("answers").add_argument("answers", type=Path)
    sheets = commands.add_parser("sheets")
    for name in ("answers", "sheets", "key"):
        sheets.add_argument(name, type=Path)
    sheets.add_argument("--seed", default=None, help="draws the orders; none: they can be drawn by nobody again")
    score = commands.add_parser("score")
    score.add_argument("key", type=Path)
    score.add_argument("judged", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.command == "answers":
        lines = (json.dumps(answer, ensure_ascii=False) for answer in write_answers())
        given.answers.write_text("\n".join(lines), encoding="utf-8")
        return 0
    if given.command == "sheets":
        lines = given.answers.read_text(encoding="utf-8").splitlines()
        seed = given.seed if given.seed is not None else str(random.SystemRandom().random())
        sheet, key = write_sheet([json.loads(line) for line in lines if line.strip()], seed)
        given.sheets.write_text(sheet, encoding="utf-8")
        given.key.write_text(json.dumps(key), encoding="utf-8")
        return 0
    key = json.loads(given.key.read_text(encoding="utf-8"))
    judged = [read_marks(path.read_text(encoding="utf-8"), key) for path in given.judged]
    together = [mark for marks in judged for mark in marks]
    low, high = spread(together)
    means = fmean(mark.open for mark in together), fmean(mark.strict for mark in together)
    sys.stdout.write(
        f"{len(judged)} judges, {len(key)} questions; of {HIGHEST_MARK}: open {means[0]:.2f}, strict {means[1]:.2f}\n"
        f"strict over open: {ratio(together):.2f} ({low:.2f} to {high:.2f}), bar {BAR:.2f}\n"
    )
    return int(ratio(together) < BAR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
