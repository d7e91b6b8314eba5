"""A term of the source does not leave in another reading: initials, last and n-th letters, capitals, spelling, sound."""

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


def test_every_other_character_is_read():
    assert _hidden("检查苍而崖且库不够及时。", "这种件称为苍崖库。", ASKED_CHINESE)
    assert not _hidden("检查苍而崖且库不够及时。", "有的留着。", ASKED_CHINESE)


def test_a_plain_word_of_the_source_is_not_looked_for_in_a_few_letters():
    over = "The yard is open to all."
    assert not _hidden("Your answers rarely differ.", over)
