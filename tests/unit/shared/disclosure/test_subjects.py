"""Nothing is said of a subject, whoever named it first, and no sentence tells what only a passage says."""

import pytest

from shared.disclosure.frame import USUAL_RULES, BaseRules
from shared.disclosure.subjects import PlacedText, find_roles, find_subjects
from shared.disclosure.word_lists import lines
from tests.leaks.frame_words import frame_words
from tests.unit.shared.disclosure.asking import codes

_RECORD = "Ruth Pellow, teacher. Sleeps badly since March. Account svc-04 is hers."


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Is Ruth Pellow well?", {"ruth", "pellow"}),
        ("Does working with Siemens make us dependent?", {"siemens"}),
        ("What of MF-2207?", {"mf", "2207"}),
        ("申先生在做什么？", {"申先生"}),
        ("What Are The Biggest Risks In Our Contracts?", set[str]()),
        ("Is our API in plain English?", set[str]()),
        ("婚宴厅的软件供应商要是倒闭了怎么办？", set[str]()),
    ],
)
def test_a_subject_is_told_by_how_it_is_written(text: str, named: set[str]):
    assert set(find_subjects(text)) == named


@pytest.mark.parametrize(
    "said", ["Ruth Pellow is tired.", "She is tired.", "It is shared.", "Yes.", "No, it is not so."]
)
def test_of_a_subject_that_the_user_names_nothing_is_said(said: str):
    assert "identifiers" in codes(said, _RECORD, "Is Ruth Pellow well?")


def test_an_answer_that_speaks_of_no_subject_is_one_though_the_user_names_somebody():
    assert codes("Support should be agreed early.", _RECORD, "Is Ruth Pellow well?") == set()
    assert codes("They need clear rules.", _RECORD, "Do teams have rules?") == set()


def _roles(*texts: str, rules: BaseRules = USUAL_RULES) -> frozenset[str]:
    return find_roles([PlacedText(("Staff",), text) for text in texts], rules)


def test_what_tells_records_apart_is_a_subject_and_what_they_share_is_not():
    records = ["Ruth Pellow, teacher. Tired.", "Owen Strachey, driver. Ill.", "Joan Marsh, teacher. Well."]
    assert {"pellow", "driver"} <= _roles(*records)
    assert "not" not in _roles(*records, "Rooms, first floor. Cold.")
    assert _roles(*["The guard sleeps at night. Help is late."] * 3) == frozenset()


def test_what_fewer_records_share_than_the_support_tells_them_apart():
    records = ["Ruth Pellow, teacher. Tired.", "Owen Strachey, teacher. Ill.", "Joan Marsh, teacher. Well."]
    assert "teacher" not in _roles(*records)
    assert "teacher" in _roles(*records, "Ann Lee, teacher. Away.", rules=BaseRules(5, has_records=True))


def test_of_records_that_begin_otherwise_titles_and_headings_tell_the_subjects():
    files = [PlacedText((name, "Health"), "Sleeps badly.") for name in ("Night nurse", "Cook", "Gardener")]
    assert find_roles(files, USUAL_RULES) == frozenset()
    found = find_roles(files, BaseRules(has_records=True))
    assert "cook" in found
    assert "health" not in found
    one_file = [PlacedText(("Staff", name), "Sleeps badly.") for name in ("Night nurse", "Cook", "Gardener")]
    assert "cook" in find_roles(one_file, BaseRules(has_records=True))
    assert "staff" not in find_roles(one_file, BaseRules(has_records=True))


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Insomnia is a risk.", "Is Ruth Pellow well?"), ("睡眠不足是风险。", "申先生在做什么？")],
)
def test_what_goes_beyond_advice_is_held_where_somebody_is_named(said: str, asked: str):
    over = f"{_RECORD} Insomnia. 申先生：睡眠不足。"
    assert "containment" in codes(said, over, asked)
    assert "containment" not in codes(said, "Rooms are cold.", "Where are the risks? 风险在哪里？")


def test_the_lists_of_the_frame_are_what_the_script_makes():
    assert frame_words() == {name: lines(name) for name in ("frame_common", "frame_seldom")}
