"""Evaluates the part of PromQL that our alerts use over what was scraped, as Prometheus does.

The rules are those of Prometheus: "Querying" and "Operators" of its documentation, and `extrapolatedRate` of its engine
for `rate` and `increase`. What is not known here is refused, and so is a selector that nothing was ever scraped for.
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

STALE_SECONDS = 300.0
NAME = "__name__"

Labels = frozenset[tuple[str, str]]
Samples = list[tuple[float, float]]
Vector = dict[Labels, float]
Value = Vector | float


class NothingScraped(LookupError):
    """A selector finds no series: its metric, or a label of it, does not exist."""


@dataclass
class Scrapes:
    """What was scraped, by series; times are seconds."""

    series: dict[Labels, Samples] = field(default_factory=dict[Labels, Samples])
    now: float = 0.0

    def add(self, at: float, job: str, instance: str, text: str) -> None:
        """Keep what a process showed at a time."""
        self.now = at
        scraped = {"job": job, "instance": instance}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = frozenset({**sample.labels, **scraped, NAME: sample.name}.items())
                self.series.setdefault(labels, []).append((at, sample.value))

    def evaluate(self, expression: str) -> Vector:
        """Return the series for which an expression holds now.

        Raises:
            NothingScraped: a selector finds nothing.
        """
        value = self._value(promql.parse(expression))
        assert isinstance(value, dict)
        return value

    def _value(self, node: Any) -> Value:
        match node:
            case promql.NumberLiteral():
                return float(node.val)
            case promql.ParenExpr():
                return self._value(node.expr)
            case promql.VectorSelector():
                recent = {key: kept for key, all_of in self._selected(node).items() if (kept := self._recent(all_of))}
                return {key: samples[-1][1] for key, samples in recent.items()}
            case promql.AggregateExpr():
                return self._aggregated(node)
            case promql.Call():
                return self._called(node)
            case promql.BinaryExpr():
                return _combined(str(node.op), self._value(node.lhs), self._value(node.rhs))
            case _:
                raise NotImplementedError(type(node).__name__)

    def _recent(self, samples: Samples) -> Samples:
        return [sample for sample in samples if sample[0] > self.now - STALE_SECONDS]

    def _selected(self, selector: Any) -> Mapping[Labels, Samples]:
        tests = [_test_of(matcher) for matcher in selector.matchers.matchers]
        found = {
            key: samples
            for key, samples in self.series.items()
            if dict(key)[NAME] == selector.name and all(test(dict(key)) for test in tests)
        }
        if not found:
            raise NothingScraped(str(selector))
        return found

    def _aggregated(self, node: Any) -> Vector:
        inner = self._value(node.expr)
        assert isinstance(inner, dict)
        by = set(node.modifier.labels) if node.modifier is not None else set[str]()
        groups: dict[Labels, list[float]] = {}
        for key, value in inner.items():
            groups.setdefault(frozenset(pair for pair in key if pair[0] in by), []).append(value)
        join = {"sum": math.fsum, "max": max}[str(node.op)]
        return {key: join(values) for key, values in groups.items()}

    def _called(self, node: Any) -> Vector:
        match node.func.name:
            case "rate" | "increase" as name:
                (argument,) = node.args
                seconds = argument.range.total_seconds()
                selected = self._selected(argument.vector_selector)
                increases = {key: _increase(samples, self.now, seconds) for key, samples in selected.items()}
                share = seconds if name == "rate" else 1.0
                return {_unnamed(key): value / share for key, value in increases.items() if value is not None}
            case "histogram_quantile":
                quantile, buckets = map(self._value, node.args)
                assert isinstance(buckets, dict) and isinstance(quantile, float)
                return _quantiles(quantile, buckets)
            case other:
                raise NotImplementedError(other)


def _test_of(matcher: Any) -> Callable[[Mapping[str, str]], bool]:
    name, value = matcher.name, matcher.value
    match str(matcher.op):
        case "MatchOp.Equal":
            return lambda labels: labels.get(name, "") == value
        case "MatchOp.NotEqual":
            return lambda labels: labels.get(name, "") != value
        case "MatchOp.Re":
            return lambda labels: re.fullmatch(value, labels.get(name, "")) is not None
        case "MatchOp.NotRe":
            return lambda labels: re.fullmatch(value, labels.get(name, "")) is None
        case other:
            raise NotImplementedError(other)


def _unnamed(key: Labels) -> Labels:
    return frozenset(pair for pair in key if pair[0] != NAME)


def _increase(samples: Samples, now: float, seconds: float) -> float | None:
    inside = [sample for sample in samples if sample[0] > now - seconds]
    if len(inside) < 2:
        return None
    (first_at, first), (last_at, last) = inside[0], inside[-1]
    increase = last - first
    for (_, before), (_, after) in itertools.pairwise(inside):
        increase += before if after < before else 0.0  # the counter began anew
    sampled = last_at - first_at
    between = sampled / (len(inside) - 1)
    at_start, at_end = first_at - (now - seconds), now - last_at
    if at_start >= between * 1.1:
        at_start = between / 2
    if increase > 0 and first >= 0:
        at_start = min(at_start, sampled * (first / increase))  # a counter was never below zero
    if at_end >= between * 1.1:
        at_end = between / 2
    return increase * (sampled + at_start + at_end) / sampled


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _combined(operator: str, left: Value, right: Value) -> Value:
    assert isinstance(left, dict)
    if isinstance(right, float):
        return {key: value for key, value in left.items() if _COMPARISONS[operator](value, right)}
    assert isinstance(right, dict)
    others = {_unnamed(key): value for key, value in right.items()}
    match operator:
        case "and":
            return {key: value for key, value in left.items() if _unnamed(key) in others}
        case "or":
            mine = {_unnamed(key) for key in left}
            return {**left, **{key: value for key, value in right.items() if _unnamed(key) not in mine}}
        case "/":
            paired = {_unnamed(key): value for key, value in left.items() if _unnamed(key) in others}
            return {key: value / others[key] if others[key] else math.nan for key, value in paired.items()}
        case _:
            holds = _COMPARISONS[operator]
            return {
                key: value
                for key, value in left.items()
                if _unnamed(key) in others and holds(value, others[_unnamed(key)])
            }


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for key, count in buckets.items():
        labels = dict(_unnamed(key))
        bound = float(labels.pop("le"))
        histograms.setdefault(frozenset(labels.items()), []).append((bound, count))
    return {key: _quantile(quantile, sorted(bounds)) for key, bounds in histograms.items()}


def _quantile(quantile: float, bounds: list[tuple[float, float]]) -> float:
    total = bounds[-1][1]
    if not total:
        return math.nan
    rank, lower, below = quantile * total, 0.0, 0.0
    for bound, count in bounds:
        if count >= rank:
            return lower if math.isinf(bound) else lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    raise AssertionError("a histogram ends with all that it has counted")
