"""Words that may leave each, and not together: a term in any order, a sentence or a chunk shuffled or interleaved."""

import random

import pytest

from tests.examples import of_many
from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes

_SENTENCE = "The crane crew inspects the harbor hooks before dark and reports broken ropes to the warden."
_CONTENT = ["crane", "crew", "inspects", "harbor", "hooks", "dark", "reports", "broken", "ropes", "warden"]
_HAN_SENTENCE = "吊装班组清点钢索并记录损耗，随后通知码头值守人员封闭通道。"
_HAN_CONTENT = ["吊装", "班组", "清点", "钢索", "记录", "损耗", "通知", "码头", "人员", "封闭", "通道"]
_PADDING = ["teams", "habits", "owners", "gaps", "trust", "care", "rest", "haste", "doubt", "luck", "sleep", "noise"]
_OTHERS = "Bakers knead dough. Some of it is kept. Nobody counts the loaves at all."


@pytest.mark.parametrize(
    "said",
    [
        "Practice around the glass ledger is uneven.",
        "Practice around the ledger of glass is uneven.",
        "Practice around ledgers, glass and the rest is uneven.",
        "Practice is uneven. Glass. And the ledger is late.",
    ],
)
def test_a_term_of_two_words_is_one_in_any_order_and_over_marks(said: str):
    assert "identifiers" in codes(said, "It goes into the 'glass ledger' at night.")


@pytest.mark.parametrize(
    ("said", "is_term"),
    [
        ("Practice around kettle, drum and copper is uneven.", True),
        ("Practice around a drum for copper of the early kettle is uneven.", True),
        ("Practice around a kettle is uneven, and drums wait for rare copper.", True),
        ("Practice around a kettle is uneven, and drums wait for rare tin.", False),
        ("Practice around a kettle and a drum is uneven.", False),
    ],
)
def test_a_term_of_three_unusual_words_is_one_wherever_all_stand(said: str, is_term: bool):
    assert ("identifiers" in codes(said, "It is known as the copper kettle drum.")) == is_term


@pytest.mark.parametrize(("words", "is_term"), [("kettle and copper lid", True), ("kettle and lid", False)])
def test_a_term_of_four_words_is_one_where_three_stand_together(words: str, is_term: bool):
    over = "It goes into the 'copper kettle drum lid' at night."
    assert ("identifiers" in codes(f"Practice around a {words} is uneven.", over)) == is_term


def test_a_term_is_one_over_two_fields():
    over = "It goes into the 'glass ledger' at night."
    assert "identifiers" in codes(
        "Owners drift.", over, risks=["Practice hangs on glass", "Ledger and habits are late."]
    )


def test_a_label_that_holds_a_naming_verb_is_one():
    assert "identifiers" in codes("Practice around the call ladder is uneven.", "Call ladder: it hangs in the shed.")


def test_a_term_that_the_user_wrote_in_parts_is_theirs():
    over = "It goes into the 'glass ledger' at night."
    said = "Practice around the glass ledger is uneven."
    assert codes(said, over, "Is the ledger weak where glass is bought?") == set()
    assert "identifiers" in codes(said, over, "Is the ledger weak?")


@pytest.mark.parametrize(
    "said",
    [
        "A crew in hurried dark lifts moss and polishes wet steps by the gate.",
        "By the gate hurried crews polish in the dark the wet steps of moss.",
        "Perhaps the hurried often crew never polish maybe wet moss still on steps by day the gate in dark.",
    ],
)
def test_a_sentence_retold_in_any_order_and_with_fillers_is_contained(said: str):
    assert "containment" in codes(said, "The hurried crew polish wet moss on the steps by the gate in the dark.")


def test_a_sentence_with_half_the_words_of_another_is_not_contained_in_it():
    said = "A hurried crew is a weak point, and steps at the gate need care and light."
    assert codes(said, "The hurried crew polish wet moss on the steps by the gate in the dark.") == set()


def test_every_second_word_and_character_is_read_too():
    words = "nobody counts the lids before the boats leave in fog"
    said = " ".join(f"{word} maybe" for word in words.split())
    assert "overlap" in codes(f"Practice is {said} uneven.", f"Today {words} again.")
    chinese = "没有人在船开走之前清点盖子"
    assert "overlap" in codes("现有做法" + "较".join(chinese) + "不够。", f"今天{chinese}。", "哪里薄弱？")


@pytest.mark.parametrize("said", ["冷柜的备件", "备件在冷柜里", "冷柜备件"])
def test_a_chinese_term_is_one_in_any_order(said: str):
    over = "这种件称为冷柜备件。"
    assert "identifiers" in codes(f"薄弱之处在于{said}。", over, ASKED_CHINESE)
    assert codes("薄弱之处在于备件。", over, ASKED_CHINESE) == set()


@pytest.mark.parametrize("seed", range(of_many(40)))
def test_a_sentence_is_contained_in_any_order_and_between_other_words(seed: int):
    chance = random.Random(seed)
    words = chance.sample(_CONTENT, len(_CONTENT))
    padded = [word for pair in zip(words, chance.sample(_PADDING, len(words)), strict=True) for word in pair]
    for said in (words, padded, words[:8]):
        assert "containment" in codes(f"Here {' and '.join(said)} matter.", f"{_OTHERS} {_SENTENCE}")


@pytest.mark.parametrize("seed", range(of_many(40)))
def test_a_chinese_sentence_is_contained_in_any_order(seed: int):
    words = random.Random(seed).sample(_HAN_CONTENT, len(_HAN_CONTENT))
    assert "containment" in codes(f"涉及{'和'.join(words)}。", f"有的留着。{_HAN_SENTENCE}", ASKED_CHINESE)


def test_a_sentence_is_contained_over_all_fields():
    said = [" and ".join(_CONTENT[at : at + 3]) for at in (0, 3, 6)]
    assert "containment" in codes("Owners drift.", _SENTENCE, observations=said[:1], risks=said[1:])


@pytest.mark.parametrize(
    ("said", "over", "asked"),
    [
        ("Nobody is told of the ropes in time.", _SENTENCE, "Where are we weak?"),
        ("Crews are late, and reports are vague.", _SENTENCE, "Where are we weak?"),
        ("班组对损耗的记录不够及时。", _HAN_SENTENCE, ASKED_CHINESE),
    ],
)
def test_a_few_words_of_a_sentence_are_no_copy(said: str, over: str, asked: str):
    assert codes(said, over, asked) == set()


def test_what_the_user_wrote_himself_is_not_counted():
    said = f"Here {' and '.join(_CONTENT)} matter."
    assert "containment" not in codes(said, _SENTENCE, f"Are {', '.join(_CONTENT[1:])} weak?")


def test_an_answer_of_one_chunks_words_is_a_copy_though_no_sentence_is():
    sentences = (
        "Lamps wear out. Ropes fray soon. Hooks bend often. Tanks leak slowly. Doors jam. Crews tire. Bells fail. "
        "Boats drift. Nets tear. Walls crack."
    )
    said = "Lamps, ropes and hooks, tanks, doors and crews, bells and boats: nets wear and fray, bend, leak and drift."
    assert "containment" in codes(said, sentences)
    assert "containment" not in codes("Lamps wear, and owners guess who answers.", sentences)


@pytest.mark.parametrize(
    ("items", "are_alike"),
    [
        (["Owners should check the lamps.", "Owners should check the doors."], True),
        (["Owners should check the lamps.", "Nobody answers for doors."], False),
        (["负责人应当检查灯具。", "负责人应当检查门窗。"], True),
        (["负责人应当检查灯具。", "门窗的状况无人过问。"], False),
    ],
)
def test_items_that_differ_by_a_word_are_a_form_to_be_filled_in(items: list[str], are_alike: bool):
    is_english = items[0].isascii()
    said, asked = ("Owners drift.", "Where are we weak?") if is_english else ("责任划分不清。", ASKED_CHINESE)
    assert ("decoders" in codes(said, asked=asked, observations=items)) == are_alike
    assert ("decoders" in codes(said, asked=asked, risks=items[:1], recommended_actions=items[1:])) == are_alike
