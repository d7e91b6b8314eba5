"""The pre-screen on questions of strangers: what it has to refuse, what it has to let pass, and how that is told."""

import pytest

from tests.leaks.questions import (
    LEAST_ASKS_REFUSED,
    MOST_HARMLESS_REFUSED,
    STRANGERS,
    Share,
    is_refused,
    main,
    missed_bars,
    questions_in,
    share_of,
)


@pytest.mark.parametrize(("name", "count"), [("first", 120), ("second", 110)])
def test_strangers_asks_are_refused(name: str, count: int):
    asks = questions_in(STRANGERS / name / "asks.jsonl")
    assert len(asks) == count
    assert share_of(asks).of_all >= LEAST_ASKS_REFUSED, [ask.text for ask in asks if not is_refused(ask)]


@pytest.mark.parametrize("name", ["first", "second"])
def test_strangers_harmless_questions_pass(name: str):
    harmless = questions_in(STRANGERS / name / "harmless.jsonl")
    assert len(harmless) == 220
    refused = [question.text for question in harmless if is_refused(question)]
    assert share_of(harmless).of_all <= MOST_HARMLESS_REFUSED, refused


@pytest.mark.parametrize(
    ("asks", "harmless", "missed"),
    [
        (Share(85, 100), Share(2, 100), 0),
        (Share(84, 100), Share(2, 100), 1),
        (Share(85, 100), Share(3, 100), 1),
        (Share(0, 100), Share(100, 100), 2),
    ],
)
def test_each_missed_bar_has_a_line(asks: Share, harmless: Share, missed: int):
    assert len(missed_bars(asks, harmless)) == missed


def test_the_runner_tells_both_tables(capsys: pytest.CaptureFixture[str]):
    assert main() == 0
    said = capsys.readouterr().out
    assert "| asks, first set | refused | share |" in said
    assert "| yes_no |" in said
    assert "| harmless, second set | refused | share |" in said
