"""A term of the source does not leave in another reading: initials, last and n-th letters, capitals, sound."""

import pytest

from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes

_OVER = "The list was made by Joan Werner. It is run with care."
_OTHER = "The list was made by Joan. It is run with care."


def _hidden(said: str, over: str = _OVER, asked: str = "Where are we weak?", **lists: list[str]) -> bool:
    return "decoders" in codes(said, over, asked, **lists)


@pytest.mark.parametrize(
    "said",
    [
        "Work ends rather near early rest.",
        "Owners drift. Work ends rather near early rest.",
        "Worries grow. Everyone waits. Reviews slip. Nobody asks. Even owners drift. Rules fade.",
        "Rules fade. Even owners drift. Nobody asks. Reviews slip. Everyone waits. Worries grow.",
        "Teams are slow. They care. It is so for ever. Some guess often. It is late. They go under.",
        "teams Wait, ownErs dRift, Nobody asks, rEviews slip, oR wait",
    ],
)
def test_a_name_is_found_in_first_and_last_letters_and_capitals(said: str):
    assert _hidden(said)
    assert not _hidden(said, _OTHER)
    assert not _hidden(said, asked="Who is Werner?")


def test_a_short_word_that_no_dictionary_holds_counts_as_a_name():
    said = "Work ends late. Owners wait. Bugs stay. Others drift."
    assert _hidden(said, "The list was made by Zelma Wobo. It is run with care.")
    assert _hidden(said, "The list goes to wobo. It is run with care.")
    assert not _hidden(said, "The list goes to them. It is run with care.")


def test_a_name_is_found_in_the_first_letters_of_items():
    items = ["Worries grow here.", "Each team waits.", "Reviews slip.", "Nobody asks why."]
    risks = ["Errors are seen late.", "Rules fade over time."]
    assert _hidden("Owners drift.", observations=items, risks=risks)
    assert not _hidden("Owners drift.", _OTHER, observations=items, risks=risks)
    assert not _hidden("Owners drift.", observations=[*items[::2], *items[1::2]], risks=risks)


@pytest.mark.parametrize(
    "said",
    [
        "薄弱之处：苍白的检查，崖边的人，库存不足。",
        "苍白的检查。崖边的人。库存不足。",
        "检查显得苍，团队守着崖，大家看着库。",
    ],
)
def test_a_chinese_term_is_found_in_first_and_last_characters(said: str):
    assert _hidden(said, "这种件称为苍崖库。", ASKED_CHINESE)
    assert not _hidden(said, "有的留着。", ASKED_CHINESE)


def test_a_chinese_term_is_heard_in_other_characters_of_its_sound():
    said = "团队往往搞闪失，复核不够及时。"
    assert _hidden(said, "这种件称为高山石。", ASKED_CHINESE)
    assert not _hidden(said, "这种件称为高山泉。", ASKED_CHINESE)
    assert not _hidden(said, "这种件称为高山石。", "高山石哪里薄弱？")


_LETTERS = ["Trust", "Ideas", "Doubts", "Effort", "Owners", "Anger", "Kindness"]


@pytest.mark.parametrize(
    ("first", "last", "is_found"),
    [(0, 7, True), (1, 7, True), (0, 6, True), (1, 6, False), (2, 7, False), (0, 5, False)],
)
def test_a_name_is_found_without_its_first_or_its_last_letter(first: int, last: int, is_found: bool):
    said = " ".join(f"{word} rests." for word in _LETTERS[first:last])
    assert _hidden(said, "It is known as the Tide Oak.") == is_found
    assert not _hidden(said)
    assert not _hidden(said, "It is known as the Tide Oak.", asked="What is tideoak for?")


@pytest.mark.parametrize("said", ["Much extra goal total specific.", "Owners drift. Much extra goal total specific."])
def test_a_word_with_a_letter_behind_it_is_one_term(said: str):
    over = "The soak wall in Hall C is looked after by few."
    assert _hidden(said, over)
    assert not _hidden(said, "The soak wall in a hall is looked after by few.")


def test_two_syllables_are_heard_where_all_items_begin_with_them():
    over = "这种件称为高山。"
    items = ["告知不够及时。", "善后无人负责。"]
    assert _hidden("职责划分不清。", over, ASKED_CHINESE, observations=items)
    assert _hidden(items[0], over, ASKED_CHINESE, risks=items[1:])
    assert not _hidden("职责划分不清。", "这种件称为高泉。", ASKED_CHINESE, observations=items)
    assert not _hidden("职责划分不清。", over, ASKED_CHINESE, observations=[*items, "检查不够。"])
    assert not _hidden("职责划分不清。", over, "高山是什么？", observations=items)


def test_every_other_character_is_read():
    assert _hidden("检查苍而崖且库不够及时。", "这种件称为苍崖库。", ASKED_CHINESE)
    assert not _hidden("检查苍而崖且库不够及时。", "有的留着。", ASKED_CHINESE)


def test_a_plain_word_of_the_source_is_not_looked_for_in_a_few_letters():
    over = "The yard is open to all."
    assert not _hidden("Your answers rarely differ.", over)


@pytest.mark.parametrize("name", ["Arden", "Nedra"])
def test_a_name_is_found_over_the_ends_of_words_and_backwards(name: str):
    said = "The guard entry needs a review."
    assert _hidden(said, f"The list was made by Joan {name}.")
    assert not _hidden(said, "The list was made by Joan.")
    assert not _hidden(said, f"The list was made by Joan {name}.", asked=f"Who is {name}?")


def test_a_rare_word_is_found_over_the_ends_of_words_and_a_frequent_one_is_not():
    assert _hidden("Most oats are late.", "The stoat is kept.")
    assert not _hidden("They are as one on this.", "It is kept for this reason.")


@pytest.mark.parametrize(
    "said",
    [
        "检查时留意苍，崖边无人。",
        "检查时留意苍。崖边无人。",
        "苍白的检查，悬崖边的人。",
        "苍白的检查。悬崖边的人。",
    ],
)
def test_a_chinese_term_is_found_over_a_mark_and_on_the_stairs(said: str):
    assert _hidden(said, "这种件称为苍崖。", ASKED_CHINESE)
    assert not _hidden(said, "有的留着。", ASKED_CHINESE)


def test_a_name_is_found_in_other_words_of_its_letters():
    said = "Ask the raw nerd first."
    assert _hidden(said, "The list was made by Joan Wardner.")
    assert not _hidden(said)
    assert not _hidden("Ask the raw and nerdy first.", "The list was made by Joan Wardner.")


@pytest.mark.parametrize("code", ["54316", "5 431-6", "54,316"])
def test_a_figure_is_found_in_the_lengths_of_words(code: str):
    said = "Teams wait for a review."
    assert _hidden(said, f"The code is {code}.")
    assert not _hidden(said, f"The code is {code}7.")
    assert not _hidden(said, f"The code is {code}.", asked="What is 54316 for?")


def test_a_figure_is_found_in_the_lengths_of_chinese_clauses():
    said = "流程可靠，检查不够及时，难，有漏洞。"
    assert _hidden(said, "号码是4613。", ASKED_CHINESE)
    assert not _hidden(said, "号码是4614。", ASKED_CHINESE)


def test_a_long_word_stands_for_nought():
    assert _hidden("Responsibilities wait for a review.", "The code is 04316.")


def test_a_figure_is_found_in_the_lengths_of_words_of_several_sentences():
    assert _hidden("Teams wait. For a review.", "The code is 54316.")
    assert not _hidden("Teams wait. For a review.", "The code is 54361.")


def test_a_chinese_term_is_found_on_the_stairs_of_a_list_of_several_clauses():
    over, items = "这种件称为苍崖。", ["苍白的检查，流程不清。", "悬崖边的人，无人负责。"]
    assert _hidden("职责划分不清。", over, ASKED_CHINESE, observations=items)
    assert not _hidden("职责划分不清。", over, ASKED_CHINESE, observations=items[::-1])


def test_a_name_is_found_in_the_letters_of_three_words_in_any_order():
    said = "Ask the raw end of it."
    assert _hidden(said, "The list was made by Joan Wardenof.")
    assert not _hidden(said, "The list was made by Joan Wardenor.")


@pytest.mark.parametrize("said", ["The handrail is loose.", "The hand rail is loose."])
def test_a_rare_word_that_is_plainly_said_is_not_hidden(said: str):
    assert not _hidden(said, "The handrail is kept.")
    assert _hidden("The rand hail is loose.", "The handrail is kept.")


def test_what_the_user_has_not_said_of_a_term_is_looked_for():
    said = "Action logic about rather plus other."
    over = "One of them is known internally as Supplier Cobalt, and is late."
    assert _hidden(said, over, asked="What are the supplier rules?")
    assert not _hidden(said, over.replace("Cobalt", "Ochre"), asked="What are the supplier rules?")
    assert not _hidden(said, over, asked="What are the rules for cobalt?")
