"""A person's name that is made of common words does not leave, wherever it stands in the source."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.disclosure import chinese
from shared.disclosure.word_lists import lines, members
from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes, codes_of, judged

_FAMILIES = sorted(name for name in members("chinese_families") if len(name) == 1 and chinese.is_everyday_han(name))
_GIVEN = [word for word in lines("chinese_everyday")[500:20_000] if len(word) == 2]
_FRAMES = (
    "仓库钥匙都在{}手里。", "只有{}知道怎样重启。", "巡逻平时靠{}一个人。", "夜间由保安{}一人值守。", "我们依赖{}。",
    "焊工{}修好了锅炉。", "客户只认{}。", "文件交给{}处理。", "联系人：{}。",
)  # fmt: skip


@given(st.sampled_from(_FAMILIES), st.sampled_from(_GIVEN), st.sampled_from(_FRAMES))
def test_neither_a_name_of_common_words_nor_its_given_part_leaves(family: str, given_name: str, frame: str):
    before, behind = frame.split("{}")
    over = frame.format(family + given_name)
    is_apart = (family, given_name) in zip(chinese.segment(_han(over)), chinese.segment(_han(over))[1:], strict=False)
    # behind a family name, a word that begins with a title reads as that person's title, or as "a certain" person
    is_title = given_name.startswith((*lines("chinese_titles"), "某"))
    assume(is_apart and given_name not in before + behind and not is_title)
    assert "identifiers" in codes(f"{family + given_name}太累了。", over, ASKED_CHINESE)
    if chinese.segment(f"{given_name}太累了")[0] == given_name:
        assert "identifiers" in codes(f"{given_name}太累了。", over, ASKED_CHINESE)


def _han(text: str) -> str:
    """Return the stretch of a frame that holds the name."""
    return text.replace("：", "。").strip("。").rsplit("。", maxsplit=1)[-1]


def test_a_given_name_that_the_source_has_as_a_word_as_well_may_leave():
    assert "identifiers" in codes("建设太慢了。", "只有刘建设知道怎样重启。", ASKED_CHINESE)
    assert codes("建设太慢了。", "只有刘建设知道怎样重启。仓库的建设很慢。", ASKED_CHINESE) == set()


@pytest.mark.parametrize("over", ["门卫高远有钥匙。", "我们依赖高远。", "只有高远会修。", "夜间由保安高远一人值守。"])
def test_a_rare_word_is_a_name_where_a_person_is_meant(over: str):
    assert "identifiers" in codes("高远太累了。", over, ASKED_CHINESE)
    assert codes("高远太累了。", "志向高远的人很多。", ASKED_CHINESE) == set()


@pytest.mark.parametrize("over", ["仓库收到3张订单。", "仓库收到三张订单。", "每张订单都要检查。"])
def test_a_measure_behind_a_numeral_is_no_family_name(over: str):
    assert codes("订单太乱了。", over, ASKED_CHINESE) == set()


@pytest.mark.parametrize("said", ["夜间过于依赖邵启明。", "老邵太累了。", "夜间过于依赖王建国，他离开就没有人能处理。"])
def test_a_withheld_name_is_reported_as_one_and_not_as_a_figure(said: str):
    verdict = judged(said, "夜间由保安邵启明和王建国一起看守四个库区。", "我们夜间最薄弱的地方在哪里？")
    assert codes_of(verdict) & {"identifiers", "figures"} == {"identifiers"}


@pytest.mark.parametrize(
    "over", ["单笔采购由专员和东方未晞共同签字。", "回避靠申报。东方未晞做了一次比对。", "东方既白做了一次比对。"]
)
def test_a_double_family_name_that_is_a_word_is_a_name_before_characters_that_make_none(over: str):
    assert "identifiers" in codes("遇事多问东方。", over, ASKED_CHINESE)
    assert codes("遇事多问东方。", "东方市场增长较快。", ASKED_CHINESE) == set()
    assert codes("遇事多问东方。", f"{over}东方市场增长较快。", ASKED_CHINESE) == set()
    assert codes("遇事多问东方。", over, "东方是谁？") == set()


@pytest.mark.parametrize(
    "said", ["遇事多问高。", "由高负责。", "遇事先找高商量。", "可以请高帮忙。", "交给高处理比较好。"]
)
def test_a_family_name_that_is_a_word_does_not_leave_where_somebody_is_turned_to(said: str):
    over = "单笔采购由高砺翎负责。"
    assert "identifiers" in codes(said, over, ASKED_CHINESE)
    assert codes(said, "高原地区缺少设备。", ASKED_CHINESE) == set()
    assert codes("风险高，复核不够及时。", over, ASKED_CHINESE) == set()
