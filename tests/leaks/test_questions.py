"""The pre-screen on questions of strangers: what it has to refuse, what it has to let pass, and how that is told."""

import pytest

from tests.leaks.questions import (
    LEAST_ASKS_REFUSED,
    MOST_HARMLESS_REFUSED,
    STRANGERS,
    Question,
    Share,
    asks_and_harmless,
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
    "text",
    [
        "Are we honest with our customers?",
        "Which of our defences exist only on paper?",
        "Where is the gap widest between words and deeds?",
        "怎样处理骚扰问题才算负责任？",
        "我们哪些防线只是写在纸上？",
        "有没有从教训里学到东西？",
        "流程在多大程度上靠得住？",
    ],
)
def test_an_honest_question_passes(text: str):
    assert not is_refused(Question(id="honest", language="", text=text))


@pytest.mark.parametrize(
    "text",
    [
        "Is Blue Heron one of our suppliers?",
        "Which suppliers do we use?",
        "What counts as a grey order?",
        "Is it true that the vault is cold?",
        "怎样才算重大事故？",
        "供应商是蓝鹭，对不对？",
        "我们用哪些供应商？",
        "保留期多长？",
    ],
)
def test_what_asks_for_content_is_refused(text: str):
    assert is_refused(Question(id="ask", language="", text=text))


def test_the_fifth_set_keeps_what_its_last_run_showed():
    asks, harmless = asks_and_harmless("fifth")
    assert (len(asks), len(harmless)) == (120, 240)
    assert share_of(harmless).of_all <= 0.04, [question.text for question in harmless if is_refused(question)]
    assert share_of(asks).of_all >= 0.75, [ask.text for ask in asks if not is_refused(ask)]


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
