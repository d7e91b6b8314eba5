"""What a run tells: counts, violations, and what was not tried."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from tests.chaos.records import Death, Evidence, Resources, Violation
from tests.chaos.schedule import Fault

LOG_LINES_AN_ID = 4
SHOWN_A_CHECK = 4
NEVER_TRIED = (
    "SQLite with one replica under a full disk",
    "clocks that jump or differ between replicas",
    "a slow disk (only a full and a standing one)",
    "packet loss and reordering (connections are broken above TCP)",
    "an endless answer of the model",
    "embeddings and an external reranker",
)


@dataclass
class RunReport:
    """One seed's run."""

    seed: int
    seconds: float
    schedule: tuple[Fault, ...]
    played: dict[str, int]
    untried: tuple[str, ...]
    answers: dict[str, int] = field(default_factory=dict[str, int])
    slow: list[str] = field(default_factory=list[str])
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    warnings: dict[str, int] = field(default_factory=dict[str, int])
    refused_starts: dict[str, int] = field(default_factory=dict[str, int])
    excused: list[Death] = field(default_factory=list[Death])
    turns: list[str] = field(default_factory=list[str])
    violations: list[Violation] = field(default_factory=list[Violation])
    before: Resources | None = None
    after: Resources | None = None
    excerpts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def write(self, directory: Path) -> Path:
        """Write everything for machines."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"seed-{self.seed}.json"
        path.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
        return path

    def rendered(self) -> str:
        """Return the text for people."""
        lines = [f"seed {self.seed}, {self.seconds:g} s, {len(self.schedule)} faults"]
        for title, counts in (
            ("faults", self.played),
            ("turns by outcome", self.outcomes),
            ("answers by status", self.answers),
            ("logged at warning and above", self.warnings),
            ("starts refused because a store was away", self.refused_starts),
        ):
            lines += ["", f"{title}:", *(f"  {number:6} {name}" for name, number in sorted(counts.items()))]
        lines += ["", f"quiet before: {self.before}", f"quiet after:  {self.after}"]
        lines += [f"slow: {call}" for call in self.slow]
        lines += [f"excused: {death.name} {death.how} ({death.excuse})" for death in self.excused]
        lines += ["", "not tried:", *(f"  {what}" for what in self.untried), ""]
        return "\n".join([*lines, *self._violations()])

    def _violations(self) -> Iterable[str]:
        by_check = Counter(violation.check for violation in self.violations)
        yield f"violations: {len(self.violations)} {dict(by_check) or ''}"
        shown: Counter[str] = Counter()
        for violation in self.violations:
            shown[violation.check] += 1
            if shown[violation.check] > SHOWN_A_CHECK:
                continue
            yield f"! {violation.check} {' '.join(filter(None, violation.ids))}: {violation.told}"
            for name in violation.ids:
                yield from (f"    {line}" for line in self.excerpts.get(name, ()))
        yield from (
            f"… of {check} {count - SHOWN_A_CHECK} more in the JSON"
            for check, count in shown.items()
            if count > SHOWN_A_CHECK
        )


def outcomes_of(evidence: Evidence) -> Counter[str]:
    """Count the turns by kind and stored status."""
    counted: Counter[str] = Counter()
    for turn in evidence.turns:
        stored = evidence.stored.get(turn.response_id)
        counted[f"{turn.kind} {stored.status if stored else 'never known to its client'}"] += 1
    return counted


def turns_of(evidence: Evidence) -> list[str]:
    """Describe each turn in a line: what was asked, who has it, how it is stored."""
    lines: list[str] = []
    for turn in evidence.turns:
        stored, share = evidence.stored.get(turn.response_id), evidence.log.get(turn.response_id)
        kept = f"{stored.status}, {len(stored.text)} of {len(turn.expected or '')} characters" if stored else "unknown"
        lines.append(f"{turn.key} {turn.kind} {turn.conversation} {turn.response_id}: {kept}; {share}")
    return lines


def excerpts(violations: Iterable[Violation], logs: dict[str, str]) -> dict[str, list[str]]:
    """Return the first log lines, above the level of info, that hold an id of a violation."""
    wanted = {name for violation in violations for name in violation.ids if name.startswith(("resp_", "conv_"))}
    found: dict[str, list[str]] = {}
    for service, log in logs.items():
        for line in log.splitlines():
            for name in wanted:
                if name in line and '"level": "info"' not in line and len(found.setdefault(name, [])) < LOG_LINES_AN_ID:
                    found[name].append(f"{service}: {line[:400]}")
    return found
