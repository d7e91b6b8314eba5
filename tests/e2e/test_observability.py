"""Dashboards and alerts ask for metrics and labels that a run of both services has; the runbook knows all alerts."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply

ROOT = Path(__file__).parents[2]
OBSERVABILITY = ROOT / "deploy" / "observability"
DASHBOARDS = sorted((OBSERVABILITY / "dashboards").glob("*.json"))
FROM_SCRAPING = {"job", "instance", "le"}
JOBS = {"ballast-backend": "backend", "ballast-chat-shell": "chat_shell"}
METRIC_KINDS = ("Counter", "Gauge", "Histogram")


class Asked(NamedTuple):
    """A metric that an expression asks for, the labels that it names, and the value of `job` that it wants."""

    metric: str
    labels: frozenset[str]
    job: str


def asked_in(expression: str) -> list[Asked]:
    """Return what an expression asks for; labels by which it groups belong to all metrics below."""
    return list(_walk(promql.parse(expression), frozenset()))


def _walk(node: Any, grouped: frozenset[str]) -> Iterator[Asked]:
    match node:
        case promql.AggregateExpr():
            below = grouped | frozenset(node.modifier.labels if node.modifier is not None else ())
            yield from _walk(node.expr, below)
        case promql.Call():
            for argument in node.args:
                yield from _walk(argument, grouped)
        case promql.BinaryExpr():
            yield from _walk(node.lhs, grouped)
            yield from _walk(node.rhs, grouped)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            yield from _walk(node.expr, grouped)
        case promql.MatrixSelector():
            yield from _walk(node.vector_selector, grouped)
        case promql.VectorSelector():
            matchers = {matcher.name: matcher.value for matcher in node.matchers.matchers}
            yield Asked(node.name or "", grouped | frozenset(matchers), matchers.get("job", ""))
        case _:
            assert isinstance(node, promql.NumberLiteral), node


def rules() -> list[dict[str, Any]]:
    text = (OBSERVABILITY / "rules.yaml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def expressions() -> dict[str, str]:
    found = {rule["alert"]: rule["expr"] for rule in rules()}
    for path in DASHBOARDS:
        for panel in orjson.loads(path.read_bytes())["panels"]:
            for target in panel["targets"]:
                found[f"{path.stem}: {panel['title']} {target['refId']}"] = target["expr"]
    return found


@cache
def declared_labels() -> dict[str, set[str]]:
    """Return the labels that the source declares: a metric that has counted nothing yet shows none of them."""
    declared: dict[str, set[str]] = {}
    for path in (*ROOT.glob("backend/**/*.py"), *ROOT.glob("chat_shell/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=kind), args=[ast.Constant(value=str(name)), _, *labels]):
                    if kind in METRIC_KINDS:
                        named = ast.literal_eval(labels[0]) if labels else ()
                        declared.setdefault(name, set()).update(named)
                case _:
                    pass
    return declared


class Shown:
    """What one service shows: the names of its metrics with the labels that each has."""

    def __init__(self, text: str) -> None:
        self.labels: dict[str, set[str]] = {}
        declared = declared_labels()
        for family in text_string_to_metric_families(text):
            full_name = f"{family.name}_total" if family.type == "counter" else family.name
            names = [full_name]
            if family.type == "histogram":
                names += [f"{family.name}{suffix}" for suffix in ("_bucket", "_sum", "_count")]
            for name in names:
                self.labels[name] = set(declared.get(full_name, ()))
            for sample in family.samples:
                self.labels.setdefault(sample.name, set()).update(sample.labels)

    def lacks(self, asked: Asked) -> str | None:
        """Say what of a metric is not there."""
        if asked.metric not in self.labels:
            return f"no metric {asked.metric}"
        missing = asked.labels - self.labels[asked.metric] - FROM_SCRAPING
        return f"{asked.metric} has no labels {sorted(missing)}" if missing else None


async def shown_by(pair: Pair) -> dict[str, Shown]:
    """Return what both services show."""
    of_backend, of_chat_shell = await pair.metrics()
    return {"ballast-backend": Shown(of_backend), "ballast-chat-shell": Shown(of_chat_shell)}


def services_of(asked: Asked, shown: dict[str, Shown]) -> list[Shown]:
    return [each for job, each in shown.items() if not asked.job or re.fullmatch(asked.job, job)]


async def test_every_expression_asks_for_what_a_run_shows(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Hel", "lo.")))
    async with pair.async_client() as client:
        await client.responses.create(input="Hi")
    shown = await shown_by(pair)
    lacking = [
        f"{name}: {lack}"
        for name, expression in expressions().items()
        for asked in asked_in(expression)
        for service in services_of(asked, shown) or [Shown("")]
        if (lack := service.lacks(asked)) is not None
    ]
    assert lacking == []


def test_a_planted_mistake_is_found() -> None:
    text = '# TYPE ballast_turns_total counter\nballast_turns_total{outcome="failed"} 1\n'
    shown = Shown(text)
    (right,) = asked_in('sum by (outcome) (rate(ballast_turns_total{outcome="failed"}[5m]))')
    (no_label,) = asked_in("sum by (user) (rate(ballast_turns_total[5m]))")
    (no_metric,) = asked_in("rate(ballast_turn_total[5m])")
    assert shown.lacks(right) is None
    assert shown.lacks(no_label) == "ballast_turns_total has no labels ['user']"
    assert shown.lacks(no_metric) == "no metric ballast_turn_total"


def test_every_alert_has_its_section_in_the_runbook() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    alerts = [rule["alert"] for rule in rules()]
    assert re.findall(r"^## (\w+)$", runbook, re.MULTILINE) == alerts
    assert all(rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}" for rule in rules())


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_imported(path: Path) -> None:
    dashboard = orjson.loads(path.read_bytes())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) > 0
    assert dashboard["uid"] == f"ballast-{path.stem}"
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {"${datasource}"}
    places = [tuple(panel["gridPos"][each] for each in "xy") for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
