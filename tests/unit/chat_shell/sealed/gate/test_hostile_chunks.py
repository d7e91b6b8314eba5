"""Texts written to make reading them take for ever are read, and what stands in them is found."""

import time

import pytest

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Blocked, Released
from shared.disclosure.source import SourceText, read_source
from tests.examples import of_many
from tests.unit.chat_shell.sealed.gate.planting import PASSAGE, chunk, reply

_LENGTH = 1_600
"""Characters; a chunk has no more."""

_BEGINNINGS = (
    *("", "# a", "| ", "|a", "a|", "a|\n", "- ", "**a", '"a', "is called ", "called A ", "a means ", "1. ", "known a "),
    *(
        "by a ",
        "the term ",
        "(the ",
        "class A",
        "分为",
        "分为一、",
        "称为“",
        "叫一",
        "“一",
        "- 一一：",
        "第",
        "<b",
        "[a](",
    ),
)
_REPEATED = (
    " ",
    "\t",
    "\n",
    "|",
    "| ",
    "#",
    "*",
    "_",
    "-",
    "a",
    "a ",
    "A ",
    "1",
    "一",
    "`",
    "“",
    ". ",
    "和",
    "一和",
    "、一",
    "，",
    "A a ",
    "[",
    "](",
    "[a](b) ",
    "[^a] ",
    "<b ",
    "<a>",
    "<!--",
    "<rt>",
    "&amp;",
    "\\",
    "\\\n",
    "a\n",
    "> ",
    "- [ ] ",
    "1.1 ",
    "a-\n",
    "'",
    "«",
    "的",
)


_PLAIN = PASSAGE * 20
_HOSTILE = [
    ("called ", "a "), ("", "A. "), ("", "a:"), ("known ", "as "), ("the term for ", "a"), ("", "王总"), ("由", "王"),
    ("", "“a"), ("", "**a "), ("|", "a|"), ("称为", "：“"), ("", "指"), ("", "a means "), ("- ", "__a"), ("", ": a"),
]  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("beginning", _BEGINNINGS)
def test_whatever_is_repeated_is_read(beginning: str):
    step = of_many(1, few=3)  # in a short run each beginning meets a third of the repeated, the next one another third
    some = _REPEATED[_BEGINNINGS.index(beginning) % step :: step]
    texts = [beginning + (repeated * _LENGTH)[:_LENGTH] + "!" for repeated in some]
    case = prepare([chunk(text, "a.md") for text in texts], "", [])
    assert len(case.passages[0].chunks) >= 2 * len(texts)


def test_reading_a_hostile_chunk_takes_no_more_than_a_few_times_as_long_as_another():
    def seconds(text: str) -> float:
        started = time.process_time()
        read_source(SourceText("a.md", ("A heading",), text))
        return time.process_time() - started

    seconds("a first word")
    plain = max(seconds(f"{word} {_PLAIN}"[:_LENGTH]) for word in ("one", "two", "three"))
    hostile = max(seconds(beginning + (repeated * _LENGTH)[:_LENGTH]) for beginning, repeated in _HOSTILE)
    assert hostile < max(1.0, 30 * plain)


def test_judging_what_a_hostile_chunk_and_a_reply_both_repeat_takes_no_more_than_a_moment():
    families = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨" * 33
    case = prepare([chunk("".join(f"{family}主任" for family in families), "a.md")], "", [])
    said = "赵主任" + "主任张" * 42
    started = time.process_time()
    judge(reply(said * 2, observations=[said] * 4, risks=[said] * 4), case)
    assert time.process_time() - started < 1.0


def test_blanks_hide_no_term():
    blanks = " " * 300
    over = (
        f"# {blanks}Quiet ladder {blanks}#\n\n| {blanks}Cold gauge | Depth |{blanks}\n{blanks}|{blanks}:---|---|\n"
        f"{blanks}-{blanks}**Early watch:**{blanks} daily. It is called paper bridge."
    )
    case = prepare([chunk(over, "a.md")], "", [])
    for term in ("quiet ladder", "cold gauge", "early watch", "paper bridge"):
        assert isinstance(judge(reply(f"Practice around the {term} is uneven."), case), Blocked)
    assert isinstance(judge(reply("Practice around the quiet bridge is uneven."), case), Released)


def test_a_chunk_is_read_once():
    first = read_source(SourceText("a.md", (), "The quiet ladder."))
    assert read_source(SourceText("a.md", (), "The quiet ladder.")) is first
