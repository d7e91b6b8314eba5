"""Texts written to make reading them take for ever are read, and what stands in them is found."""

import pytest

from chat_shell.sealed.gate.case import prepare
from shared.disclosure.outlines import outlines_of
from tests.examples import of_many
from tests.unit.chat_shell.sealed.gate.planting import chunk

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


@pytest.mark.parametrize("beginning", _BEGINNINGS)
def test_whatever_is_repeated_is_read(beginning: str):
    step = of_many(1, few=3)  # in a short run each beginning meets a third of the repeated, the next one another third
    some = _REPEATED[_BEGINNINGS.index(beginning) % step :: step]
    texts = [beginning + (repeated * _LENGTH)[:_LENGTH] + "!" for repeated in some]
    case = prepare([chunk(text, "a.md") for text in texts], "", [])
    assert len(case.passages.chunks) >= 2 * len(texts)


def test_blanks_hide_no_term():
    blanks = " " * 300
    text = (
        f"# {blanks}Skerrow Ledger {blanks}#\n\n| {blanks}Moor Gauge | Depth |{blanks}\n{blanks}|{blanks}:---|---|\n"
        f"{blanks}-{blanks}**Tarn Watch:**{blanks} daily. It is called brindle, and that is called quell marker."
    )
    found = terms_of(ChunkSource("a.md", (), text)).phrases
    assert {"Moor Gauge", "Tarn Watch", "quell marker"} <= found
    assert any(phrase.startswith("Skerrow Ledger") for phrase in found)
    assert "brindle" in found


def test_blanks_hide_no_order():
    blanks = " " * 300
    text = "".join(
        f"{blanks}{sign}{blanks}{name}\n" for sign, name in (("-", "tide"), ("2.", "moor"), ("三、", "heath"))
    )
    rows = "".join(f"{blanks}|{blanks}{name}{blanks}| x |\n" for name in ("tide", "moor", "heath"))
    order = ({"tid"}, {"moor"}, {"heath"})
    assert [tuple(map(set, outline)) for outline in outlines_of(text)] == [order]
    assert [tuple(map(set, outline)) for outline in outlines_of(rows)] == [order]


def test_the_terms_of_a_chunk_are_read_once():
    first = terms_of(ChunkSource("a.md", (), "The Skerrow Ledger."))
    assert terms_of(ChunkSource("a.md", (), "The Skerrow Ledger.")) is first
