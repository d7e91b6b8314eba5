"""Whom a source names, by a capital in English, by the role of a person in Chinese, does not leave in any form."""

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
        ("徐行", "主任徐行审批。", "车辆缓缓通过。"),
        ("温馨", "出纳：温馨。", "气氛温馨的人。"),
    ],
)
def test_a_chinese_word_is_a_name_where_its_role_says_so(name: str, naming: str, using: str):
    assert of(name, naming) == {"identifiers"}
    assert of(name, naming, f"{name}怎么样？") >= {"identifiers"}
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


@pytest.mark.parametrize(
    ("name", "naming", "using"),
    [
        ("hunter", "It is Dr. Hunter who signs.", "It is the hunter who signs."),
        ("rye", "It needs the hand of Sunniva Castellanos-Rye.", "They store rye here."),
    ],
)
def test_a_title_with_a_full_stop_and_a_doubled_name_hide_no_name(name: str, naming: str, using: str):
    assert of(name, naming) >= {"identifiers"}
    assert of(name, using) == set()


@pytest.mark.parametrize(
    ("name", "naming"),
    [
        ("高远", "高远经理负责这里。"),
        ("路遥", "据说是本市企业家路遥，他已退休。"),
        ("回廊", "回廊计划的费用另算。"),
        ("回廊计划", "回廊计划的费用另算。"),
        ("独孤", "须向独孤念真口头报告。"),
    ],
)
def test_a_rare_chinese_word_is_a_name_before_a_title_behind_a_trade_and_of_a_plan(name: str, naming: str):
    assert of(name, naming) >= {"identifiers"} or of(name, naming) >= {"figures"}


def test_a_word_that_stands_before_a_title_and_elsewhere_is_a_thing():
    assert of("冷库", "冷库主管负责冷库的清扫。", "冷库怎么样？") == set()
    assert "identifiers" not in of("冷库", "冷库主管负责清扫。冷库很冷，冷库很大。")


@pytest.mark.parametrize("said", ["虞教授", "骆老师", "骆经理"])
def test_a_family_name_with_a_title_is_a_person_whatever_the_source_says(said: str):
    assert of(said) == {"identifiers"}
    assert of(said, asked=f"{said}怎么看？") == set()


@pytest.mark.parametrize("said", ["季松柏", "季，松，柏", "季。松柏"])
def test_a_chinese_name_is_found_over_marks(said: str):
    assert codes(f"薄弱之处在于{said}的做法。", "由季松柏负责复核。", ASKED_CHINESE)


def test_a_chinese_name_is_found_over_two_fields():
    said = {"risks": ["做法不够，季", "松柏也不够。"]}
    assert codes("责任不清。", "由季松柏负责复核。", ASKED_CHINESE, **said)


@pytest.mark.parametrize(
    "over", ["都要领取**冷柜备件**，不得代领。", "內部代號為冷櫃備件。", "都要領取「冷柜备件」，不得代領。"]
)
def test_emphasis_in_chinese_and_traditional_phrases_introduce_terms(over: str):
    assert "identifiers" in codes("薄弱之处在于冷柜备件的复核。", over, ASKED_CHINESE)


def test_words_that_begin_neighbouring_items_are_read_as_one():
    over = "They talk to the firm under the name Nightjar."
    items = ["Night work wears people out.", "Jar lids block the exits."]
    assert "identifiers" in codes("Owners drift.", over, observations=items)
    assert codes("Owners drift.", observations=items) == set()


def test_a_bare_word_that_a_sentence_is_about_is_a_name():
    assert of("anvil", "Anvil is the plan for the upper room.") == {"identifiers"}
    assert of("anvil", "An anvil is kept in the upper room.") == set()


@pytest.mark.parametrize(
    ("word", "over", "asked"),
    [
        ("carey", "It was signed by Joanna Carey.", "How do we care for guests?"),
        ("eighty", "Some of it is kept.", "We have eight depots."),
    ],
)
def test_another_word_with_the_same_stem_is_not_the_users(word: str, over: str, asked: str):
    assert of(word, over, asked)


@pytest.mark.parametrize("said", ["向主管", "新经理", "原负责人", "向负责人"])
def test_a_plain_word_before_a_title_is_no_family_name(said: str):
    assert of(said) == set()


def test_two_plain_words_with_a_hyphen_are_no_name():
    assert of("service", "They fill in the Self-Service form.") == set()


@pytest.mark.parametrize("word", ["负责人", "办公室", "联系人"])
def test_an_everyday_heading_of_three_characters_stays_everyday(word: str):
    assert of(word, f"# {word}\n\n有的留着。") == set()


@pytest.mark.parametrize("word", ["center", "coupling", "amply"])
def test_a_word_that_only_begins_like_a_quantity_is_none(word: str):
    assert of(word) == set()
