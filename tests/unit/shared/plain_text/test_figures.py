"""Figures as values, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.plain_text.figures import Figure, chinese_value, english_value, figures, telling_figures


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("12%", "12.0 %", "１２％", "⑫ per cent", "twelve percent", "百分之十二", "百分之 12"), Figure("12", "%")),
        (("12.5%", "百分之十二点五", "12½ %", "12 ½%"), Figure("12.5", "%")),
        (("0.75 kg", "¾ kg"), Figure("0.75", "kg")),
        (("20%", "两成"), Figure("20", "%")),
        (("0.3%", "3‰", "千分之三"), Figure("0.3", "%")),
        (("$1,250", "1 250 dollars", "one thousand two hundred and fifty USD"), Figure("1250", "usd")),
        (("350元", "三百五十元", "叁佰伍拾元", "RMB 350"), Figure("350", "cny")),
        (("3.5 million euros", "€3.5mn", "350万欧元"), Figure("3500000", "eur")),
        (("90-day", "ninety days", "九十天", "90 日"), Figure("90", "day")),
        (("3x", "three times", "三倍"), Figure("3", "time")),
    ],
)  # fmt: skip
def test_one_figure_in_many_writings(texts: tuple[str, ...], expected: Figure):
    assert [figures(text) for text in texts] == [[expected]] * len(texts)
    assert expected.is_telling


@pytest.mark.parametrize(
    "text",
    ["in 2024", "2024年", "第一", "一天", "one day", "十分重要", "200 of them", "twelve", "12", "0 hours", "none"],
)
def test_what_any_text_may_say(text: str):
    assert telling_figures(text) == frozenset()


@pytest.mark.parametrize("text", ["1.25", "347", "12345", "1%", "$1", "10 days", "2500 ms", "三百四十七"])
def test_what_points_at_its_source(text: str):
    assert telling_figures(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12,5 %", {Figure("12.5", "%"), Figure("5", "%")}),
        ("45,47 minutes", {Figure("45.47", "minute"), Figure("47", "minute")}),
        ("3120,47 minutes", {Figure("3120"), Figure("3120.47", "minute"), Figure("47", "minute")}),
        ("到2023，47%的订单", {Figure("47", "%")}),
        ("30，45，47分钟", {Figure("47", "minute")}),
        ("2,750,47 kg", {Figure("2750"), Figure("47", "kg")}),
    ],
)  # fmt: skip
def test_a_comma_parts_decimals_or_numbers(text: str, expected: set[Figure]):
    assert telling_figures(text) == expected


@pytest.mark.parametrize(
    ("numerals", "value"),
    [("一二三", 123), ("十", 10), ("二十", 20), ("一万二千三百四十五", 12345), ("一亿二千万", 120_000_000),
     ("一万亿", 10**12), ("一百零五", 105), ("廿三", 23), ("万", 10_000)],
)  # fmt: skip
def test_chinese_numerals(numerals: str, value: int):
    assert chinese_value(numerals) == value


def test_english_number_words():
    assert english_value(["two", "hundred", "and", "fifty", "six", "thousand", "four"]) == 256_004
    assert english_value(["million"]) == 1_000_000


@given(st.integers(0, 10**15))
def test_digits_are_read_with_or_without_separators(number: int):
    assert figures(f"{number}") == figures(f"{number:,}") == [Figure(str(number))]


@given(st.text(alphabet="0123456789 ,.'%$一二百万点千分之 andtwelvehundred-", max_size=200))
def test_any_text_is_read(text: str):
    assert all(figure.significant_digits >= 0 for figure in figures(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$1.2m", "$1.2 million"), ("2万5千元", "25,000元"), ("两万五", "25,000"), ("2万5000", "二万五千"),
        ("三百五", "350"), ("三百零五", "305"),
    ],
)  # fmt: skip
def test_amounts_are_read_in_their_short_forms(one: str, other: str) -> None:
    assert figures(one) == figures(other)


@pytest.mark.parametrize("numeral", ["一", "三百五十", "1", "one ", "111 ", "十"])
def test_a_row_without_an_end_is_a_row_of_figures(numeral: str) -> None:
    found = figures(numeral * 5_000)
    assert len(found) > 100
    assert max(len(figure.value) for figure in found) <= 60
