"""A figure of the bench: what was measured, in which unit, against which goal."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One row of the table. `at_least` says which way is good; `direct` is the same without the pair."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    direct: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the goal is met."""
        if self.goal is None:
            return ""
        met = self.value >= self.goal if self.at_least else self.value <= self.goal
        return "met" if met else "MISSED"

    def row(self) -> tuple[str, ...]:
        """Return the table's cells."""
        goal = "" if self.goal is None else f"{'>=' if self.at_least else '<='} {self.goal:,g}"
        direct = "" if self.direct is None else f"{self.direct:,.2f}"
        ratio = "" if not self.direct else f"{self.value / self.direct:.3f}"
        return (self.name, f"{self.value:,.2f} {self.unit}", goal, direct, ratio, self.verdict)


HEADINGS = ("figure", "pair", "goal", "direct", "ratio", "")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def render_table(figures: Sequence[Figure]) -> str:
    """Render the rows as aligned text."""
    rows = [HEADINGS, *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def write_json(figures: Sequence[Figure], path: Path) -> None:
    """Write the figures for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1), encoding="utf-8")
