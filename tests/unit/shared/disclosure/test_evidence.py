"""What counts as evidence against a word or a sentence, and what is chance: ordinary words of a source stay free."""

import pytest

from chat_shell.sealed.gate import judge, prepare
from shared.disclosure.names import persons_in
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceText, read_source
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply
from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes, codes_of, of, phrases

_OVER = "The bakers of the lower yard hide keys under cracked stones."


def test_a_retelling_is_told_with_its_words():
    said = "Keys of bakers hide under a cracked stone in the lower yard."
    assert "bakers" in " ".join(phrase for phrase in phrases(said, _OVER) if " " in phrase)


def test_words_that_join_others_make_no_retelling():
    over = "They are not here, and it is what we have for them."
    assert codes("It is not for them that they are here, and we have what it is.", over) == set()


def test_the_users_own_words_make_no_retelling():
    said = "Bakers of the yard hide keys under stones, which is a habit."
    asked = "Do bakers hide their keys, and do stones in the yard help?"
    assert "containment" in codes(said, "Bakers hide keys under yard stones.")
    assert "containment" not in codes(said, "Bakers hide keys under yard stones.", asked)


@pytest.mark.parametrize(
    ("word", "over", "is_name"),
    [
        ("装修", "装修项目的费用另算。", False),
        ("迁移", "迁移项目的费用另算。", False),
        ("招标", "招标工程的费用另算。", False),
        ("灯塔", "灯塔项目的费用另算。", True),
        ("启航", "启航行动的费用另算。", True),
    ],
)
def test_what_is_often_planned_is_no_code_name(word: str, over: str, is_name: bool):
    assert ("identifiers" in of(word, over)) == is_name


@pytest.mark.parametrize(
    ("word", "over", "is_name"),
    [
        ("approval", "Approval is a task. Some of it is kept.", False),
        ("marzipan", "Marzipan is a task. Some of it is kept.", True),
        ("anvil", "Anvil is the plan for the yard.", True),
        ("anvil", "Anvil is the metal that an anvil has.", False),
    ],
)
def test_a_bare_subject_is_a_name_by_the_evidence_of_a_capital(word: str, over: str, is_name: bool):
    assert ("identifiers" in of(word, over)) == is_name


def test_words_are_joined_in_a_sentence_and_not_over_a_stop_nor_where_they_are_the_users():
    over = "They talk to the firm under the name Nightjar."
    assert "identifiers" in codes("Owners guard the night jar badly.", over)
    assert "identifiers" not in codes("Owners drift at night. Jar lids crack.", over)
    assert "identifiers" not in codes("Owners guard the night jar badly.", over, "Is the night jar weak?")


def test_a_scattered_term_counts_by_words_that_are_not_the_users():
    over = "It is known as the copper kettle drum."
    said = "Practice around a kettle is uneven, and drums wait for rare copper."
    assert "identifiers" in codes(said, over)
    assert "identifiers" not in codes(said, over, "Is the kettle weak?")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("由王大明负责复核。", "王大明"),
        ("据企业家祁不凡，此事已定。", "祁不凡"),
        ("| 出纳 | 田中玉 |", "田中玉"),
        ("主任周一岳审批。", "周一岳"),
    ],
)
def test_a_frequent_character_hides_no_person(text: str, name: str):
    assert name in set(persons_in(text))


@pytest.mark.parametrize("text", ["委任为主任。", "原因是主管不在。", "全面的，", "安的樊，"])
def test_words_that_run_on_are_no_person(text: str):
    assert set(persons_in(text)) == set()


@pytest.mark.parametrize(
    ("said", "over", "is_held"),
    [
        ("Access is worst in mid-winter.", "In winter the gate is shut.", True),
        ("Access is worst in winter.", "In mid-winter the gate is shut.", True),
        ("Access is worst in mid-winter.", "At night the gate is shut.", False),
        ("Practice hangs on an ex-hunter.", "We asked Mr Hunter for it.", True),
        ("Practice hangs on a pre-glass ledger.", "It goes into the 'glass ledger' at night.", True),
    ],
)
def test_a_word_with_a_hyphen_is_judged_by_what_it_says(said: str, over: str, is_held: bool):
    assert ("identifiers" in codes(said, over)) == is_held


@pytest.mark.parametrize(
    ("word", "user", "is_own"),
    [
        ("cents", "center", False), ("cent", "center", False), ("wing", "wed", False), ("lens", "len", False),
        ("audits", "audit", True), ("audit", "auditing", True), ("wrexleys", "wrexley", True),
        ("policies", "policy", True), ("mid-winter", "winter", False), ("winter", "mid-winter", True),
    ],
)  # fmt: skip
def test_only_a_form_of_the_same_word_is_the_users(word: str, user: str, is_own: bool):
    assert OwnWords.of(f"What of the {user}?").holds(word) == is_own


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("管理员权限表，须复核。", set[str]()),
        ("据说是企业家路遥，他已退休。", {"路遥"}),
        ("据董事长成功，此事已定。主任夏天审批。", {"成功", "夏天"}),
        ("须向司徒静口头报告。", {"司徒静"}),
        ("须向独孤念真口头报告。", {"独孤念真"}),
        ("须向慕容文静报告。", {"慕容文静"}),
        ("由司徒静和独孤念真同去。", {"司徒静", "独孤念真"}),
    ],
)
def test_a_name_ends_where_another_word_begins(text: str, names: set[str]):
    found = read_source(SourceText("", (), text)).persons
    assert {name for name in found if not any(other.startswith(name) for other in found - {name})} == names


@pytest.mark.parametrize(
    ("said", "over", "asked"),
    [
        ("Storage of lithium is uneven.", "Cells of lithium are kept.", "Where are we weak?"),
        ("锂的存放不够妥当。", "锂电池须分开存放。", ASKED_CHINESE),
    ],
)
def test_an_element_is_from_here_only_where_a_chunk_that_was_shown_speaks_of_it(said: str, over: str, asked: str):
    other = "Some of it is kept." if said.isascii() else "有的留着。"

    def found(shown: str, beside: str) -> set[str]:
        case = prepare([chunk(shown, "a.md")], asked, [], [chunk(beside, "a.md")])
        return codes_of(judge(reply(said), case))

    assert "figures" not in found(over, other)
    assert "figures" in found(other, over)


def test_words_between_others_at_equal_distances_are_read():
    over = "Nobody counts lids before boats leave."
    said = "Nobody ever counts old lids just before small boats often leave."
    assert "overlap" in codes(said, over)
    assert "overlap" not in codes("Nobody in the team counts what is owed, and the lids crack.", over)


def test_many_persons_of_a_hostile_document_need_no_pattern_each():
    surnames, given = "王李张刘陈杨赵黄周吴", "槐栩昱岑琰珩璟瑾瓒"
    names = [f"由{family}{first}{second}负责。" for family in surnames for first in given for second in given]
    assert "identifiers" in codes("薄弱之处在于老槐的做法。", "".join(names), ASKED_CHINESE)
