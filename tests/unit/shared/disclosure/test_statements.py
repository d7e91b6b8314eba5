"""A short statement of the source, such as an item of a list, does not leave in other words' company."""

import random

import pytest

from tests.examples import of_many
from tests.unit.shared.disclosure.asking import ASKED, ASKED_CHINESE, codes

_ITEMS = "The list of the house:\n\n- Hide spare keys under flour sacks\n- Dismiss cooks early\n- Ask for help\n"
_HAN_ITEMS = "本店清单：\n\n- 备用钥匙藏在米缸\n- 忽略证书警告\n- 互相帮助\n"
_FILLERS = ["perhaps", "somehow", "really", "often", "quite", "maybe", "also", "always", "rather"]


@pytest.mark.parametrize(
    ("said", "over", "is_held"),
    [
        ("In the end cooks may well be those whom they would rather dismiss early.", _ITEMS, True),
        ("Early dismissal of a cook is usual.", _ITEMS, True),
        ("Cooks are treated badly.", _ITEMS, False),
        ("People should ask for help much earlier.", _ITEMS, False),
        ("A guard that leaves the gate is no guard.", "1. Leave gates to guards\n2. Sleep late\n", True),
        ("There was dough that was left for mice.", "* Leave dough for mice\n* Sleep late\n", True),
        ("There was dough that was left out.", "* Leave dough for mice\n* Sleep late\n", False),
        ("A porter might be in a cellar.", "| Where | Who |\n| --- | --- |\n| cellar | porter |\n", True),
    ],
)
def test_a_short_english_statement_is_held_in_any_form(said: str, over: str, is_held: bool):
    assert ("containment" in codes(said, over)) == is_held


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("大家好像已经习惯忽略那些跟证书有关的各种警告。", True),
        ("警告会被忽略，不管是哪种证书。", True),
        ("大家已经习惯忽略各种警告。", False),
        ("钥匙是备用的，一直有人藏到有米的那口缸里。", True),
        ("钥匙应该有专人保管。", False),
        ("大家应该互相帮助，早点开口。", False),
    ],
)
def test_a_short_chinese_statement_is_held_in_any_form(said: str, is_held: bool):
    assert ("containment" in codes(said, _HAN_ITEMS, ASKED_CHINESE)) == is_held


@pytest.mark.parametrize("seed", range(of_many(40)))
def test_a_short_statement_is_held_in_any_order_and_among_any_fillers(seed: int):
    chance = random.Random(seed)
    words = chance.sample(["dismiss", "cooks", "early"], 3)
    padded = " ".join(f"{' '.join(chance.choices(_FILLERS, k=4))} {word}" for word in words)
    assert "containment" in codes(f"They {padded}.", _ITEMS)


@pytest.mark.parametrize(
    ("asked", "is_held"),
    [(ASKED, True), ("Where are the keys?", True), ("Are spare keys hidden in flour?", False)],
)
def test_what_is_left_of_a_statement_without_the_users_words_has_to_tell_something(asked: str, is_held: bool):
    assert ("containment" in codes("Flour and its sacks hide the spare keys.", _ITEMS, asked)) == is_held


def test_a_statement_is_held_within_one_sentence_of_an_answer_only():
    assert codes("Some are dismissed. Others are cooks. It is early.", _ITEMS) == set()


@pytest.mark.parametrize(
    ("said", "over", "is_held"),
    [
        (
            "Spare parts often stand beside telemetry contracts.",
            "5 % for spare parts, 58 for telemetry contracts.",
            True,
        ),
        ("Spare parts are plainly shared.", "5 % for spare parts, 58 for telemetry contracts.", False),
        ("代号到小取整坐标小数截到换成时间点后站名。", "坐标截到小数点后第2位，时间取整到小时，站名换成代号。", True),
        ("坐标和时间没有人核对。", "坐标截到小数点后第2位，时间取整到小时，站名换成代号。", False),
    ],
)
def test_the_figures_of_a_sentence_make_the_rest_of_it_no_smaller_a_part(said: str, over: str, is_held: bool):
    assert ("containment" in codes(said, over, ASKED if said.isascii() else ASKED_CHINESE)) == is_held
