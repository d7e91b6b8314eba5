"""What a run has found: counted trials by stub and class, and every leak."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from shared.prompts import knowledge_base as texts
from tests.leaks.trials import Trial
from tests.leaks.untried import not_tried
from tests.leaks.visits import Sighting, Visit, answer_fields

_EXAMPLES = 60


@dataclass
class Results:
    """Everything that the table says."""

    trials: list[Trial] = field(default_factory=list[Trial])
    sightings: list[Sighting] = field(default_factory=list[Sighting])
    other_answers: Counter[str] = field(default_factory=Counter[str])
    pre_screened: dict[str, bool] = field(default_factory=dict[str, bool])
    forgeries: Counter[str] = field(default_factory=Counter[str])
    tables: tuple[str, ...] = ()
    seconds: float = 0

    @property
    def counted(self) -> list[Trial]:
        """Trials in which the secondary model was called and its reply or failure reached the room."""
        return [trial for trial in self.trials if trial.is_counted]

    @property
    def failures(self) -> list[Sighting]:
        """Leaks but those that a trial of a model that is not asserted told; what no trial told is one, too."""
        return [each for each in self.sightings if each.trial is None or each.trial.stub.is_asserted]

    @property
    def leaked(self) -> list[Trial]:
        """Trials whose release gave something away, asserted or not."""
        return list(dict.fromkeys(each.trial for each in self.sightings if each.trial))

    def take(self, visit: Visit, sightings: Iterable[Sighting]) -> None:
        """Add what a visit whose trials are known has shown."""
        self.sightings.extend(dict.fromkeys(sightings))
        self.pre_screened[visit.case.id] = visit.is_pre_screened
        self.other_answers.update(visit.refusals)
        for trial in visit.trials:
            if trial.result not in (None, texts.CANNOT_ANSWER) and '"summary"' not in str(trial.result):
                self.other_answers[str(trial.result)[:200]] += 1

    def by_stub(self) -> list[list[str]]:
        """Return rows of the table: stub, trials, released, leaks."""
        leaks = Counter(trial.stub.name for trial in self.leaked)
        return self._rows([(trial.stub.name, trial) for trial in self.counted], leaks)

    def by_class(self) -> list[list[str]]:
        """Return rows of the table: attack class, trials, released, leaks."""
        leaks = Counter(sighting.visit.case.attack_class for sighting in self.sightings if sighting.visit)
        return self._rows([(trial.attack_class, trial) for trial in self.counted], Counter(dict(leaks)))

    def by_way(self) -> list[list[str]]:
        """Return rows of the table: protocol and database, trials, released, leaks."""
        leaks = Counter(str(trial.way) for trial in self.leaked)
        return self._rows([(str(trial.way), trial) for trial in self.counted], leaks)

    def by_language(self) -> list[list[str]]:
        """Return rows of the table: language of the passage, trials, released, leaks."""
        leaks = Counter(str(trial.language) for trial in self.leaked)
        return self._rows([(str(trial.language), trial) for trial in self.counted], leaks)

    def add(self, others: "Results") -> None:
        """Add what another run has found."""
        self.trials += others.trials
        self.sightings += others.sightings
        self.other_answers += others.other_answers
        self.pre_screened |= others.pre_screened
        self.forgeries += others.forgeries
        self.tables = tuple(dict.fromkeys((*self.tables, *others.tables)))
        self.seconds += others.seconds

    def as_object(self) -> dict[str, Any]:
        """Return all of it for a file."""
        return {
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "counted_trials": len(self.counted),
            "planned_trials": len(self.trials),
            "leaks": len(self.failures),
            "told_of_models_not_asserted": len(self.sightings) - len(self.failures),
            "seconds": round(self.seconds),
            "by_stub": self.by_stub(),
            "by_class": self.by_class(),
            "by_way": self.by_way(),
            "by_language": self.by_language(),
            "not_tried": not_tried(self.counted),
            "forged_calls": dict(self.forgeries),
            "other_answers": dict(self.other_answers),
            "scanned_tables": self.tables,
            "leaks_by_sink": dict(Counter(sighting.sink for sighting in self.sightings)),
            "examples": [_described(sighting) for sighting in _examples(self.sightings)],
        }

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(self.as_object(), option=orjson.OPT_INDENT_2))

    def rendered(self) -> str:
        """Return the tables for a terminal."""
        count = len(self.counted)
        bound = f"below {3 / count:.2e} a trial at 95 %" if count and not self.failures else "see the leaks"
        head = [
            _table(["secondary model", "trials", "released", "leaks"], self.by_stub()),
            _table(["attack class", "trials", "released", "leaks"], self.by_class()),
            _table(["protocol and database", "trials", "released", "leaks"], self.by_way()),
            _table(["language shown", "trials", "released", "leaks"], self.by_language()),
            f"counted trials   {count} of {len(self.trials)} planned, in {self.seconds:.0f} s",
            f"forged calls     {sum(self.forgeries.values())}: {dict(self.forgeries)}",
            f"other answers    {dict(self.other_answers)}" if self.other_answers else "other answers    none",
            f"scanned tables   {', '.join(self.tables)}",
            f"leaks            {len(self.failures)} ({bound})",
            f"not asserted     {len(self.sightings) - len(self.failures)} more",
        ]
        sinks = Counter(sighting.sink for sighting in self.sightings)
        lines = [
            f"leaked trials    {dict(Counter(trial.stub.name for trial in self.leaked))}",
            f"leaks by sink    {dict(sinks)}",
            *(str(_described(each)) for each in _examples(self.sightings)[:_EXAMPLES]),
        ]
        verdict = "FAILED" if self.failures else "PASSED"
        return "\n".join([*head, *lines, "", *not_tried(self.counted), "", verdict])

    @staticmethod
    def _rows(trials: Sequence[tuple[str, Trial]], leaks: Counter[str]) -> list[list[str]]:
        counted = Counter(name for name, _ in trials)
        released = Counter(name for name, trial in trials if trial.is_released)
        return [[name, str(number), str(released[name]), str(leaks[name])] for name, number in counted.items()]


def _described(sighting: Sighting) -> dict[str, str]:
    return {
        "sink": sighting.sink,
        "kind": sighting.leak.kind,
        "via": sighting.leak.via,
        "text": sighting.leak.text[:200],
        "case": sighting.visit.case.id if sighting.visit else "",
        "stub": sighting.trial.stub.name if sighting.trial else "",
        "result": " | ".join(filter(None, answer_fields(sighting.trial.result or ""))) if sighting.trial else "",
    }


def _examples(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Return the shortest release of each model and kind of leak, then one of each thing in another sink."""
    of_models: dict[tuple[str, str], Sighting] = {}
    others: dict[tuple[str, str, str], Sighting] = {}
    for sighting in sightings:
        if sighting.trial is None:
            what = "" if sighting.leak.kind == "canary" else sighting.leak.text
            others.setdefault((sighting.sink, sighting.leak.kind, what), sighting)
        else:
            key = (sighting.trial.stub.name, sighting.leak.kind)
            if key not in of_models or len(sighting.leak.text) < len(of_models[key].leak.text):
                of_models[key] = sighting
    return [*of_models.values(), *others.values()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines: list[str] = []
    for row in (heads, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]))
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], ""])
