"""Which figures of an answer become marks: by the text and the user's words alone, however the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.restricted.domain.figure_marks import FigureMarks, OwnFigures, mark_figures
from shared.prompts.knowledge_base import CHINESE_FIGURE_WITHHELD, FIGURE_WITHHELD
from tests.examples import examples

NOTHING = OwnFigures("")
SIGN = "█"


def shown(text: str, own: OwnFigures = NOTHING) -> str:
    return mark_figures(text, own).replace(FIGURE_WITHHELD, SIGN).replace(CHINESE_FIGURE_WITHHELD, SIGN)


FIGURES = """
48,200 litres|48 200|1'250|48.2k|twelve hundred|one hundred and seventy-three|47|007 days|half a million|3 %|3.5%
3 . 5 %|5 per cent|five percent|$5|US$ 5|5 dollars|EUR 5|5 €|a hundred euros|9:30|9 a.m.|nine o'clock|half past nine
ten to nine|quarter to five|3 days|three-month|half an hour|2024|2024-03-05|5 March|March 5, 2024|3rd of March
the third of May|12/24|the twenty-first|1,2,3|1e6|1.2.3|12.3|4x|two thirds|½|3½|⅔|㉑|٤٨|４８，２００|4\u200b8\u200b2
48\u00a0200|百分之十二|二〇二四年|四十七分钟|三百五十元|伍拾万元|2万5千|三成|三点五|三分之一|十三|下午三点|三点半|5点30分|3月5日|第十一
百万美元|两百|3个月|9 working days|5 square metres|three clear months|6 per year|9个工作日
"""


@pytest.mark.parametrize("figure", FIGURES.strip().replace("\n", "|").split("|"))
@pytest.mark.parametrize("frame", ["{}", "It is {} there.", "他说{}。", "({})", "**{}**", "about\n{}\n"])
def test_a_figure_is_replaced(figure: str, frame: str) -> None:
    text = shown(frame.format(figure))
    assert SIGN in text
    assert not any(map(str.isnumeric, text.replace("第", "")))


NO_FIGURES = """
There are three priorities.|Twelve steps, and 12 people.|One of them, and no one else.|two or three|no figure at all
the first, the second and the tenth|the 3rd and the 10th|The first may go.|You may first ask.|half of it|a dozen
No one this week|two sharp bits|3 risks in hours
hundreds of ways, thousands of them, a hundred reasons|A bit later, a second try|UTF-8|IPv6|a4|one-off|[3]|(7) c
第一，第十。|三个重点|十分重要|一定|统一|一成不变|一点|三点建议|第三天|万一|千万|大陆|十、最后
"""
LISTS = ["\n".join(f"{number}. A" for number in range(1, 40)), "- 12) a\n- 13) b", "12、其次\n13、最后"]


@pytest.mark.parametrize("text", [*NO_FIGURES.strip().replace("\n", "|").split("|"), *LISTS])
def test_what_is_no_figure_or_a_small_count_stays(text: str) -> None:
    assert mark_figures(text, NOTHING) == text


def test_the_mark_is_in_the_language_of_the_text() -> None:
    assert mark_figures("It takes 47 minutes", NOTHING) == f"It takes {FIGURE_WITHHELD}"
    both = f"约为 {CHINESE_FIGURE_WITHHELD}，即 ({CHINESE_FIGURE_WITHHELD})"
    assert mark_figures("约为 4,800，即 (47)", NOTHING) == both
    assert mark_figures("4,800", NOTHING) == FIGURE_WITHHELD
    assert mark_figures("4,800", OwnFigures("有多少？")) == CHINESE_FIGURE_WITHHELD
    assert mark_figures("It is 48,200升", NOTHING) == f"It is {CHINESE_FIGURE_WITHHELD}"


@pytest.mark.parametrize(
    ("own", "text", "expected"),
    [
        ("Is it 1,250 kg?", "1250 kilograms, 1.25 k, or 1251", f"1250 kilograms, 1.25 k, or {SIGN}"),
        ("Within 30 days?", "thirty days, 30, not 30 %", f"thirty days, 30, not {SIGN}"),
        ("超过三十天吗", "30天，30 days", "30天，30 days"),
        ("Is 12 % right?", "百分之十二，12 per cent, 12 days", f"百分之十二，12 per cent, {SIGN}"),
        ("Version 1.2.3?", "version 1.2.3, not 1.2.4", f"version 1.2.3, not {SIGN}"),
        ("At half past nine?", "half past nine, not half past ten", f"half past nine, not {SIGN}"),
        ("On the third of March or 4 May?", "the 4 May, third of March", "the 4 May, third of March"),
        ("top 3", "3 %", SIGN),
        ("Within 9 working days?", "9 working days, 9 days, not 8 working days", f"9 working days, 9 days, not {SIGN}"),
        ("Is it eleven?", "the eleventh", f"the {SIGN}"),
    ],
)
def test_what_the_user_wrote_stays(own: str, text: str, expected: str) -> None:
    assert shown(text, OwnFigures(own)) == expected


def test_a_number_that_goes_on_no_list_is_no_list_marker() -> None:
    assert shown("12. A\n13. B\n15. C\n47. D") == f"12. A\n13. B\n{SIGN}. C\n{SIGN}. D"
    assert shown("\n".join(f"{number}. A" for number in range(1, 102))).endswith(f"99. A\n{SIGN}. A\n{SIGN}. A")
    assert shown("So 13. That is it.") == f"So {SIGN}. That is it."


def test_citations_stay_where_something_can_be_cited() -> None:
    assert shown("so [13][7] and [1250]") == f"so [{SIGN}][7] and [{SIGN}]"
    assert shown("so [13][7]", OwnFigures("", keeps_citations=True)) == "so [13][7]"


def test_an_endless_figure_is_one_mark() -> None:
    assert shown("one " * 400 + "end") == f"{SIGN} end"
    assert shown("1" * 5_000) == SIGN
    assert shown("4" + "\u200b" * 50 + "8") == SIGN


def test_what_shows_nothing_is_not_kept_for_ever() -> None:
    marks = FigureMarks(NOTHING)
    marks.add("4" + "\u200b" * 5_000)
    assert len(marks.take_settled()) > 4_000


def test_a_figure_at_an_interruption_is_withheld_with_what_goes_on() -> None:
    marks = FigureMarks(NOTHING)
    marks.add("It is 4")
    before = "".join(marks.take_settled() + marks.finish(goes_on=True))
    marks.add("8 litres, or 3")
    assert before + "".join(marks.finish(goes_on=False)) == f"It is {FIGURE_WITHHELD}, or 3"


ATOMS = (
    *"0123459.,:/-%$€ \n\u200b①½８一三十百千万点分之半第天年两元成ex()[]'’",
    *("one ", "twenty", "-five", "hundred", " and ", " point ", "half past nine", "march ", "may ", "first ", "th"),
    *(
        "per cent",
        "o'clock",
        "a.m.",
        "kg",
        " m ",
        " to ",
        "dozen ",
        "壹",
        "拾",
        "伍元",
        "下午",
        "分钟",
        "个百分点",
        "w ",
        "字",
    ),
)
TEXTS = st.lists(st.sampled_from(ATOMS) | st.characters(), max_size=60).map("".join)


@examples(1_000)
@given(text=TEXTS, sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20), own=TEXTS)
def test_however_the_text_is_cut_the_same_is_shown(text: str, sizes: list[int], own: str) -> None:
    figures = OwnFigures(own)
    marks, parts, at, turn = FigureMarks(figures), list[str](), 0, 0
    while at < len(text):
        marks.add(text[at : at + sizes[turn % len(sizes)]])
        parts += marks.take_settled()
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    parts += marks.finish(goes_on=False)
    assert len(parts) == len(text)
    assert "".join(parts) == mark_figures(text, figures)


@examples(300)
@given(text=TEXTS)
def test_no_number_above_twelve_is_left(text: str) -> None:
    left = mark_figures(text.replace(".", "").replace(")", "").replace("、", ""), NOTHING)
    runs = "".join(character if character in "0123456789" else " " for character in left).split()
    assert all(int(run) <= 12 for run in runs)
