"""Numbers in any writing, and idioms that only sound like one."""

import pytest

from chat_shell.sealed.gate.figures import has_figure

_NUMBERS = [
    "12", "１２", "⑫", "²", "Ⅻ", "㈤", "㋀", "٣", "twelve percent", "XIV", "xiv", "Phase V", "a third of staff",
    "half of them",
    "one month", "one point five", "in May", "by march", "the May review", "Q one", "on Friday", "Mon", "every second",
    "thirty-day", "tenfold", "twice", "one in five", "a dozen", "ninety nine", "second of June", "first quarter",
    "quarterly",
    "百分之十二", "十二点五", "两成", "三倍", "壹贰叁", "一二三", "一 二 三", "三个", "两年", "一年", "半年",
    "第三季度",
    "周五", "星期日", "一个月", "第五章", "一半", "翻番", "近百人", "上千", "五成", "三分之一", "拾伍", "十二月",
    "一天",
    "CMLXXI个托盘值得关注。", "thirty分钟", "twenty年值得关注。", "逾期forty-one天", "sixteen学时", "one hundred瓦时",
    "C元", "X分钟", "XXVI小时", "CD days", "cd days", "二十四小时", "一点二", "该事项为二十四小时", "三十六项",
    "sixtytwo", "fortyeight", "twentyone", "Twentyfirst", "threehundredandsix", "fourscore", "threescore", "a gross of",
    "a gross of items", "a grand per head", "sixpence", "tuppence", "a tithe", "semiannual", "biannually", "biweekly",
    "bi-monthly", "triennial", "duet of months", "a quartet of reviews", "the sextet of weeks", "trio of years",
    "an octet of days", "a couple of short weeks", "a decade", "by sept", "in jan", "the window ends dec",
    "until feb", "nov begins", "each fri", "at Michaelmas", "on Lady Day", "by easter", "fiftyish",
    "花甲之年", "古稀", "而立之年", "年逾不惑", "半载", "三载", "十分一", "什一", "三成", "一刻钟", "半个时辰",
    "春节前",
    "一成", "貳拾", "百分點", "兩週", "数十项", "十分钟", "十分之七", "统一十二", "百分百", "二零二四",
]  # fmt: skip
_IDIOMS = [
    "Teams may act first of all; one of the gaps is second to none.", "Second, ownership may be unclear.",
    "A second reviewer may help.", "third-party access", "Third, review the rules.", "May I suggest a review?",
    "the mild mix of dim civic ill", "No one owns it, and one may doubt it.", "They march on.", "double-check the list",
    "现有流程统一，一致性较好", "十分重要", "一旦发生，进一步处理一些", "第一，明确责任；第二，统一口径",
    "一般而言，唯一",
    "百折不挠", "气象万千，以防万一", "I people ask", "a mild mix of minutes",
    "Teams often gross over it in a grand plan", "gross negligence", "a pair of reviewers",
    "Errors may mar the record.",
    "No one is sent; someone often attends", "from the sun to the mon", "annual and monthly reviews", "a risk score",
    "十分一致", "十分一般", "为什么", "下载入口", "记载有误", "千载难逢", "装载体系",
    "统一日程", "统一元数据", "统一周期和年度计划", "第三方", "一方面", "一次性", "一个负责人", "成效不足", "成本",
    "双方",
    "不一致", "半成品", "各部门人员", "一成不变", "多个系统", "周末", "千篇一律", "几项条件", "下一轮", "五花八门",
]  # fmt: skip


@pytest.mark.parametrize("text", _NUMBERS)
def test_a_number_in_any_writing_is_a_figure(text: str):
    assert has_figure(text)


@pytest.mark.parametrize("text", _IDIOMS)
def test_idioms_are_none(text: str):
    assert not has_figure(text)


@pytest.mark.parametrize(
    "text",
    [
        "Annex V", "Annex X", "V and X", "Plan X, then", "the V-model", "(V)", "“X”", "X：", "Ｖ", "V形", "见X",
        "after éV", "after éX",  # read without its accent each would be one word
    ],
)  # fmt: skip
def test_a_capital_that_stands_alone_is_a_roman_numeral(text: str):
    assert has_figure(text)


@pytest.mark.parametrize("text", ["VR sets", "Xs", "wax", "LaTeX", "TV", "eVo"])
def test_such_a_capital_inside_a_word_is_none(text: str):
    assert not has_figure(text)


@pytest.mark.parametrize(
    "text",
    [
        "late May", "Late May is busy", "the late May review", "It ends in late may.", "due late may",
        "early may, at best",
        "mid-May", "mid-may and later", "LATE MAY", "from early may to then", "late may this time",
        "late may of this sort",
    ],
)  # fmt: skip
def test_a_part_of_may_is_a_date(text: str):
    assert has_figure(text)


@pytest.mark.parametrize(
    "text", ["Late may be better", "It is late, may I ask?", "Too late may cost more.", "early maybe", "the late mayor"]
)
def test_may_after_late_is_often_a_verb(text: str):
    assert not has_figure(text)
