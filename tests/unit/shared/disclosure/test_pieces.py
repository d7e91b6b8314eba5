"""A piece of a sentence does not leave in another order, nor a name in pieces."""

import random

import pytest

from tests.examples import of_many
from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes

_SENTENCE = "The night porter hands the cellar keys to the baker before the ferry brings flour, and signs no book."
_HAN_SENTENCE = "夜班门卫在渡船运来面粉之前把地窖钥匙交给面包师，谁也不在登记簿上签名。"
_NAMED = "A Velmar ledger is the reserve that Quenrik keeps for a stalled Torphal until the Sundgax board meets."


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("Cellar the keys porter baker the hands.", True),
        ("Porter hands and cellar keys to baker: that deserves attention.", True),
        ("That deserves attention: keys, cellar, porter, flour.", True),
        ("Keys and flour need an owner.", False),
        ("The porter has no plan, so improve the training of people who hold keys.", False),
    ],
)
def test_a_piece_of_an_english_sentence_is_held_in_any_order(said: str, is_held: bool):
    assert ("containment" in codes(said, _SENTENCE)) == is_held


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("门卫夜班渡船面粉地窖钥匙值得关注。", True),
        ("渡船就运来更面粉还门卫又交给也面包师。", True),
        ("钥匙应该有专人保管，值得关注。", False),
    ],
)
def test_a_piece_of_a_chinese_sentence_is_held_in_any_order(said: str, is_held: bool):
    assert ("containment" in codes(said, _HAN_SENTENCE, ASKED_CHINESE)) == is_held


@pytest.mark.parametrize("seed", range(of_many(40)))
def test_any_six_words_of_a_sentence_are_a_piece_of_it(seed: int):
    chance = random.Random(seed)
    words = chance.sample(["porter", "cellar", "keys", "baker", "ferry", "flour", "signs", "book"], 6)
    assert "containment" in codes(f"They say {' and '.join(words)}.", _SENTENCE)


def test_the_users_words_make_no_piece():
    asked = "Does the porter hand the keys of the cellar to the baker?"
    assert codes("Keys of the cellar go from porter to baker.", _SENTENCE, asked) == set()


def test_a_sentence_is_told_without_its_names():
    assert "containment" in codes("Until some board meets, what is stalled keeps a ledger as reserve.", _NAMED)
    assert codes("Nobody knows when a board meets.", _NAMED) == set()


@pytest.mark.parametrize(
    ("said", "over", "is_held"),
    [
        ("听说船老了，鲸也要更换。", "租用的船分别叫浮玉、朝槿、听鲸，船龄较长。", False),
        ("听方面的鲸也要更换。", "租用的船分别叫浮玉、朝槿、听鲸，船龄较长。", True),
        ("听鲸。", "租用的船分别叫浮玉、朝槿、听鲸，船龄较长。", True),
        ("涌方面的浪值得关注。", "| 级别 | 期限 |\n| --- | --- |\n| 涌浪 | 较短 |\n", True),
        ("浪费较多，值得关注。", "| 级别 | 期限 |\n| --- | --- |\n| 涌浪 | 较短 |\n", False),
    ],
)
def test_a_chinese_name_is_held_in_single_characters(said: str, over: str, is_held: bool):
    assert ("identifiers" in codes(said, over, ASKED_CHINESE)) == is_held


@pytest.mark.parametrize(
    ("said", "over", "is_held"),
    [
        ("A plan matters.", "The boats are called Amber, Lost Page and Plan.", False),
        ("The kettle matters.", "The boats are called Amber, Lost Page and Kettle.", True),
        ("The page is not lost at all.", "The boats are called Amber, Lost Page and Kettle.", True),
        ("Crooked rules stand in the way of an orchard.", "The Crooked Orchard ceiling is high.", True),
        ("Rules stand in the way of an orchard.", "The Crooked Orchard ceiling is high.", False),
        ("The marvel matters.", "The limit of Marvel-57 is high.", True),
        ("The day is long, and in part it is dark.", "Part day means an absence of some hours.", False),
        ("Gs has to agree.", "The limit is lifted by Grace Stone alone.", True),
        ("It has to agree.", "The limit is lifted by Ian Thomas alone.", False),
    ],
)
def test_names_are_held_that_are_listed_apart_numbered_or_initials(said: str, over: str, is_held: bool):
    assert ("identifiers" in codes(said, over)) == is_held


@pytest.mark.parametrize("left_out", range(7))
def test_a_name_is_found_without_any_one_of_its_letters(left_out: int):
    words = {"q": "quite", "u": "under", "i": "in", "l": "late", "d": "day", "o": "only", "r": "rules"}
    spelled = [words[letter] for place, letter in enumerate("quildor") if place != left_out]
    assert "decoders" in codes(f"{' '.join(spelled)}.", "The limit of Quildor is high.")


def test_a_plan_is_heard_though_one_of_its_characters_is_written():
    over = "青岩计划的上限较高。"
    said = ["轻方面仍需改进", "言语上下要多沟通"], ["记的做法各处不同", "划这一块要再看"]
    assert "decoders" in codes("制度健全。", over, ASKED_CHINESE, observations=said[0], risks=said[1])


@pytest.mark.parametrize("word", ["carbon", "oxygen", "copper"])
def test_an_element_that_is_a_common_word_is_one_all_the_same(word: str):
    assert codes(f"Then {word}.", "The limit is high.") == {"figures"}
    assert "figures" not in codes(f"Then {word}.", f"The limit of {word} is high.")


def test_a_clause_that_stands_twice_in_a_row_is_a_code():
    assert codes("Single, single.") == {"decoders"}
    assert codes("A single person holds it, and a single plan.") == set()


def test_a_numeral_in_pinyin_is_a_figure():
    assert codes("Er qi people hold it.") == {"figures"}


def test_a_word_in_no_dictionary_is_found_without_one_of_its_letters():
    over = "It waits until the bramvel and the elsund board meets."
    assert "decoders" in codes("Web your extra system future total.", over)


def test_a_whole_sentence_in_another_order_is_held_where_the_user_has_said_some_of_its_words():
    over, asked = "The people of the hall see no chance here, but a cause.", "What could cause harm to people?"
    assert codes("A but cause chance hall here no of people see the.", over, asked) == {"containment"}
    assert codes("A but cause chance here no of people see the.", "They see it.", asked) == set()
    assert codes("The cause of harm to people is seen here, but no chance.", over, asked) == set()
    said_all = "Why do the people of the hall see no chance here, but a cause?"
    assert codes("The people of the hall see a cause here, but no chance.", over, said_all) == set()


def test_a_whole_sentence_in_another_order_is_held_without_its_figures():
    over, asked = (
        "Of those who left in their first year, 61 % had had no talk at all.",
        "Who has left in the first year?",
    )
    assert "containment" in codes("Who those in left first their had year no had at talk all.", over, asked)
