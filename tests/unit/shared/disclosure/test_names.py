"""Whom a source names, by a capital in English and by the role of a person in Chinese, does not leave in any writing."""

import pytest

from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes, of


@pytest.mark.parametrize(
    ("name", "naming", "using"),
    [
        ("hunter", "We asked Mr Hunter for it.", "We asked every hunter for it."),
        ("hunter", "It is Dr Hunter who signs.", "It is the hunter who signs."),
        ("shepherd", "The list was made by Jill Shepherd.", "The list was made by a shepherd."),
        ("marsh", "We asked Joan Marsh for it.", "We asked in the marsh for it."),
        ("beacon", "We use the Beacon daily.", "We use the beacon daily."),
        ("beacon", "We use the Beacon daily.", "We use the Beacon daily. A beacon is lit."),
        ("beacon", "We use the Beacon daily.", "It burns.\n\nBeacon of old."),
    ],
)
def test_an_everyday_word_is_a_name_where_a_capital_says_so(name: str, naming: str, using: str):
    for written in (name, name.title(), f"{name}s", f"{name}'s"):
        assert of(written, naming) >= {"identifiers"}
        assert of(written, using) == set()


def test_the_first_word_of_a_sentence_and_of_a_heading_is_no_name():
    over = "# Kitchen And Yard\nPersons wait. Kitchens are cold.\n- Lamps burn.\n“Doors are shut.”"
    assert codes("Doors, lamps and persons are in a cold row.", over) == set()


@pytest.mark.parametrize(
    ("name", "naming", "using"),
    [
        ("周全", "由周全负责复核。", "安排不够周全。"),
        ("安宁", "找安宁签字。", "换来一时安宁。"),
        ("徐行", "主任徐行审批。", "车辆徐行通过。"),
        ("温馨", "出纳：温馨。", "气氛温馨的人。"),
    ],
)
def test_a_chinese_word_is_a_name_where_its_role_says_so(name: str, naming: str, using: str):
    assert of(name, naming) == {"identifiers"}
    assert of(name, naming, f"{name}怎么样？") == set()
    assert of(name, using) == set()


@pytest.mark.parametrize("said", ["老鲁", "小鲁", "鲁总", "鲁经理", "鲁女士", "姓鲁", "鲁槐", "鲁某"])
def test_a_person_is_known_by_title_and_by_familiar_names(said: str):
    over = "由鲁槐负责复核。"
    assert "identifiers" in codes(f"薄弱之处在于{said}的做法。", over, ASKED_CHINESE)


@pytest.mark.parametrize(
    "over", ["审批人：阙映。", "负责人为阙映，", "| 出纳 | 阙映 |", "阙映经理到场。", "向阙映汇报。", "闕映女士批准。"]
)
def test_a_name_is_found_in_any_role(over: str):
    assert "identifiers" in codes("薄弱之处在于阙映的做法。", over, ASKED_CHINESE)
