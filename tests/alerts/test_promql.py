"""The evaluator counts as Prometheus does, and refuses what was never scraped."""

import math

import pytest

from tests.alerts.promql import NothingScraped, Scrapes


def scraped(*values: float, name: str = "turns_total", labels: str = 'outcome="failed"') -> Scrapes:
    """Return scrapes of one counter, 15 seconds apart."""
    scrapes = Scrapes()
    add(scrapes, *values, name=name, labels=labels)
    return scrapes


def add(scrapes: Scrapes, *values: float, name: str, labels: str) -> None:
    for number, value in enumerate(values):
        text = f"# TYPE {name.removesuffix('_total')} counter\n{name}{{{labels}}} {value}\n"
        scrapes.add(number * 15.0, "backend", "one", text)


def only(scrapes: Scrapes, expression: str) -> float:
    (value,) = scrapes.evaluate(expression).values()
    return value


@pytest.mark.parametrize(
    ("values", "increase"),
    [
        ((0, 10), 10.0),  # a counter that began at 0 is not taken to have been below it
        ((100, 110), 10.0 * 22.5 / 15),  # half an interval is added where the scrapes begin
        ((0, 10, 20, 30), 30.0),
        ((5, 10, 3), 8.0 * 37.5 / 30),  # begun anew in between
        ((7, 7, 7), 0.0),
    ],
)
def test_increases_are_those_of_prometheus(values: tuple[float, ...], increase: float) -> None:
    scrapes = scraped(*values)
    assert only(scrapes, "increase(turns_total[5m])") == pytest.approx(increase)
    assert only(scrapes, "rate(turns_total[5m])") == pytest.approx(increase / 300)


def test_one_sample_has_no_rate() -> None:
    assert scraped(5).evaluate("rate(turns_total[5m])") == {}


def test_shares_are_matched_by_their_labels() -> None:
    scrapes = scraped(0, 1)
    add(scrapes, 0, 3, name="turns_total", labels='outcome="completed"')
    share = 'sum(rate(turns_total{outcome="failed"}[5m])) / sum(rate(turns_total[5m]))'
    assert only(scrapes, share) == pytest.approx(0.25)
    assert scrapes.evaluate(f"{share} > 0.3") == {}
    assert scrapes.evaluate(f"{share} > 0.2") != {}
    by = 'sum by (outcome) (rate(turns_total{outcome!~"completed|left"}[5m]))'
    assert set(scrapes.evaluate(by)) == {frozenset({("outcome", "failed")})}


def test_nothing_by_nothing_is_no_number_and_no_alert() -> None:
    share = "sum(rate(turns_total[5m])) / sum(rate(turns_total[5m]))"
    assert math.isnan(only(scraped(1, 1), share))
    assert scraped(1, 1).evaluate(f"{share} > 0") == {}


def test_quantiles_lie_inside_their_bucket() -> None:
    scrapes = Scrapes()
    for at, counts in ((0, (0, 0, 0)), (15, (10, 20, 20))):
        bounds = zip(("1", "2", "+Inf"), counts, strict=True)
        lines = [f'wait_bucket{{le="{bound}"}} {count}' for bound, count in bounds]
        scrapes.add(
            at, "backend", "one", "# TYPE wait histogram\n" + "\n".join([*lines, "wait_count 20", "wait_sum 9"]) + "\n"
        )
    assert only(scrapes, "histogram_quantile(0.75, sum by (le) (rate(wait_bucket[5m])))") == pytest.approx(1.5)


def test_gauges_are_compared_and_joined() -> None:
    scrapes = Scrapes()
    scrapes.add(0, "backend", "one", "# TYPE used gauge\nused 9\n# TYPE most gauge\nmost 10\n# TYPE off gauge\noff 0\n")
    assert scrapes.evaluate("used / most > 0.8") != {}
    assert scrapes.evaluate("used >= most and most > 0") == {}
    assert scrapes.evaluate("off > 0 or used > 8") != {}
    assert scrapes.evaluate("max(used) > 9") == {}


@pytest.mark.parametrize("expression", ["rate(turn_total[5m])", 'turns_total{outcome="lost"} > 0', "max(turns)"])
def test_what_was_never_scraped_is_refused(expression: str) -> None:
    with pytest.raises(NothingScraped):
        scraped(1, 2).evaluate(expression)
