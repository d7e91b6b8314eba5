"""How a source introduces a term of plain words, and that these may not stand together afterwards."""

import pytest

from tests.unit.shared.disclosure.asking import ASKED_CHINESE, codes


@pytest.mark.parametrize(
    "over",
    [
        "# Sleepy orchard\nSome of it is kept.",
        "Sleepy orchard\n==============\nSome of it is kept.",
        "3.2 Sleepy orchard\nSome of it is kept.",
        "Sleepy orchard: some of it is kept.",
        "- **Sleepy orchard:** some of it is kept.",
        "| Sleepy orchard | low |\n|---|---|\n| x | y |",
        "| Tier | Limit |\n|---|---|\n| Sleepy orchard | low |",
        "It goes into the “sleepy orchard” at night.",
        "It goes into the 'sleepy orchard' at night.",
        "It goes into the «sleepy orchard» at night.",
        "It goes into the `sleepy orchard` at night.",
        "It goes into the **sleepy orchard** at night.",
        "It goes into the *sleepy orchard* at night.",
        "It goes into the <b>sleepy orchard</b> at night.",
        "Staff call it the sleepy orchard (and laugh).",
        "It is known in the yard as the sleepy orchard.",
        "The deputy (hereinafter the sleepy orchard) decides.",
        "A sleepy orchard means a row that nobody owns.",
        "By a sleepy orchard we understand a row that nobody owns.",
        "A sleepy orchard is a row that nobody owns.",
        "The password is sleepy orchard. It is short.",
        "Project Sleepy Orchard is late.",
    ],
)
def test_an_introduced_term_does_not_leave(over: str):
    said = "Practice around the sleepy orchard is uneven."
    assert "identifiers" in codes(said, over)
    assert codes(said, over, "What of the sleepy orchard?") == set()
    assert codes("Practice in the orchard is uneven.", over) == set()


def test_the_title_of_a_document_introduces_its_words():
    said = "Practice around the sleepy orchard is uneven."
    for title in ("guides/Sleepy orchard.md", "sleepy-orchard.docx", "a/b/SleepyOrchard.md", "sleepy_orchard"):
        assert codes(said, title=title) == {"identifiers"}


@pytest.mark.parametrize(
    "over",
    [
        "We walk in the sleepy orchard at night.",
        "They call off the walk in a sleepy orchard.",
        "The sleepy, cold orchard is far.",
    ],
)
def test_words_that_stand_side_by_side_once_are_no_term(over: str):
    assert codes("Practice around the sleepy orchard is uneven.", over) == set()


@pytest.mark.parametrize(
    "over",
    [
        "# 冷柜备件\n有的留着。",
        "第三章 冷柜备件\n有的留着。",
        "冷柜备件：有的留着。",
        "| 冷柜备件 | 低 |\n|---|---|\n| 甲 | 乙 |",
        "这种件叫“冷柜备件”。",
        "这种件称为冷柜备件。",
        "所谓冷柜备件，即无人时的存货。",
        "冷柜备件是指无人时的存货。",
        "冷柜备件，指无人时的存货。",
        "都要领取 **冷柜备件** 才行。",
    ],
)
def test_an_introduced_chinese_term_does_not_leave(over: str):
    said = "薄弱之处在于冷柜备件的复核。"
    assert "identifiers" in codes(said, over, ASKED_CHINESE)
    assert codes(said, over, "冷柜备件哪里薄弱？") == set()
    assert codes("薄弱之处在于备件的复核。", over, ASKED_CHINESE) == set()
