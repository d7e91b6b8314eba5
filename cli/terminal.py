"""Output: results on standard output, everything that is said about them on standard error.

Texts of models, documents and servers may hold sequences that command a terminal. None of them is shown.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

# control characters but newline and tab, and the marks that turn the direction of text around
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_BREAKS = re.compile("[\t\n]+")


def harmless(text: str) -> str:
    """Return a text without what commands a terminal."""
    return _COMMANDS.sub("", text)


def say_count(number: int, one: str, many: str) -> str:
    """Say how many there are of what has these names."""
    return f"{number} {one if number == 1 else many}"


class Terminal:
    """The two streams of a command; with `is_json` standard output holds JSON and nothing else."""

    def __init__(self, *, is_json: bool):
        self.is_json = is_json
        self._results = Console(highlight=False, soft_wrap=True)
        self._notes = Console(highlight=False, soft_wrap=True, stderr=True)

    def json(self, value: object) -> None:
        """Write a JSON document on a line of its own."""
        self._write(json.dumps(value, ensure_ascii=False) + "\n")

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of the result."""
        self._results.print(Text(harmless(text), style=style))

    def piece(self, text: str) -> None:
        """Write a part of a line at once."""
        self._write(harmless(text))

    def note(self, text: str, style: str = "") -> None:
        """Say something that is no part of the result."""
        self._notes.print(Text(harmless(text), style=style))

    def _write(self, text: str) -> None:
        self._results.file.write(text)
        self._results.file.flush()

    def table(self, rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
        """Write a table of some members of objects with their titles; where the output is no terminal, with tabs."""
        titles = [column.replace("_", " ") for column in columns]
        if not self._results.is_terminal:
            for cells in (titles, *([cell(column, row.get(column)) for column in columns] for row in rows)):
                self.piece("\t".join(_BREAKS.sub(" ", each) for each in cells) + "\n")
            return
        table = Table(*titles, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(Text(harmless(cell(column, row.get(column)))) for column in columns))
        self._results.print(table)

    def progress(self) -> Progress:
        """Return a bar on standard error, which shows nothing where that is no terminal."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        return Progress(*columns, console=self._notes, disable=not self._notes.is_terminal)


def cell(column: str, value: object) -> str:
    """Return the text of a member of an object, by the member's name: an instant is one of the clock in UTC."""
    if value is None:
        return "-"
    if column.endswith("_at") and isinstance(value, int):
        return datetime.fromtimestamp(value, UTC).isoformat(" ", "minutes")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
