"""Citation markers in streamed text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chat_shell.knowledge.domain.citations import MAX_DIGITS, MAX_NUMBERS, CitationParser, CitedDocument
from shared.models.events import CitationAdded
from tests.unit.counted_calls import calls_made

DOCUMENTS = {n: CitedDocument(file_id=f"doc_{n}", filename=f"{n}.md") for n in (1, 2, 3, 12)}
ALPHABET = "[]()【】`~123 ,:\n\\>x，"

UNCHANGED = [
    "`a[1]` b",
    "``a ` [1]`` b",
    "```\n[1]\n```\n",
    "```python\na[1]\n``\n[1]\n````\n",
    "~~~\n[1]\n```\n[1]\n~~~\n",
    "  ```\n[1]\n  ```\n",
    "````\n```\n[1]\n````\n",
    "> ```\n> [1]\n> ```\n",
    "- ```py\na = b[1]\n\nc[2]\n```\n",
    "```\nnever closed [1]\n\n[2]",
    "```\n[1]\n``` not yet\n[1]\n",
    "`one\nparagraph [1]`",
    "arr[0]",
    "[2024]",
    "[1, 2024]",
    "[01]",
    "[text][1]",
    "[text][1][2]",
    "[1]: https://example.com",
    "a\n  [1]: https://example.com",
    "[1](https://example.com)",
    "[[1]](https://example.com)",
    "[[1](https://example.com)]",
    "[1, 2](u)",
    "[1, 2)",
    "(1, 2]",
    "]1, 2[",
    "[1-2]",
    "[1,  2]",
    "[ 1 ]",
    "[",
    "[[",
    "[1",
    "[[1",
    "[1,",
    "【1",
    "【1]",
    "[1】",
    "\\[1]",
    "[]",
    "[^1]",
    "[x] [ ] done",
    "~~struck~~",
    "plain",
]

CITED = [
    ("Blue [1].", "Blue [1].", [(1, 5)]),
    ("Blue[1]", "Blue[1]", [(1, 4)]),
    ("[1]", "[1]", [(1, 0)]),
    ("a [1, 2] b", "a [1][2] b", [(1, 2), (2, 5)]),
    ("a [1,2]", "a [1][2]", [(1, 2), (2, 5)]),
    ("[1][12]", "[1][12]", [(1, 0), (12, 3)]),
    ("[[1]]", "[1]", [(1, 0)]),
    ("[[1, 3]] x", "[1][3] x", [(1, 0), (3, 3)]),
    ("[[1] x]", "[[1] x]", [(1, 1)]),
    ("[[1]", "[[1]", [(1, 1)]),
    ("[[[1]]]", "[[1]]", [(1, 1)]),
    ("[1]]", "[1]]", [(1, 0)]),
    ("【1】", "[1]", [(1, 0)]),
    ("【1】【2】。", "[1][2]。", [(1, 0), (2, 3)]),
    ("文【1，2】(注)", "文[1][2](注)", [(1, 1), (2, 4)]),
    ("see [1]: it", "see [1]: it", [(1, 4)]),
    ("[1, [2]", "[1, [2]", [(2, 4)]),
    ("[2024] [1]", "[2024] [1]", [(1, 7)]),
    ("[1](u)[2]", "[1](u)[2]", [(2, 6)]),
    ("\\\\[1]", "\\\\[1]", [(1, 2)]),
    ("`a` [1]", "`a` [1]", [(1, 4)]),
    ("\\`[1]\\`", "\\`[1]\\`", [(1, 2)]),
    ("`open\n\n[1]", "`open\n\n[1]", [(1, 7)]),
    ("```\nx\n```\n[1]", "```\nx\n```\n[1]", [(1, 10)]),
    ("```\r\nx\r\n```\r\n[1]", "```\r\nx\r\n```\r\n[1]", [(1, 13)]),
    ("```x``` [1]", "```x``` [1]", [(1, 8)]),
    ("~~a~~ [1]", "~~a~~ [1]", [(1, 6)]),
    ("\\][1]", "\\][1]", [(1, 2)]),
    ("]【1】[2]", "][1][2]", [(1, 1), (2, 4)]),
    ("[1][2]: x", "[1][2]: x", [(1, 0), (2, 3)]),
    ("a ~~~ [1]", "a ~~~ [1]", [(1, 6)]),
]


def read(pieces: list[str]) -> tuple[str, list[CitationAdded]]:
    parser = CitationParser(DOCUMENTS)
    outputs = [*(parser.feed(piece) for piece in pieces), parser.flush()]
    return "".join(o.text for o in outputs), [citation for o in outputs for citation in o.citations]


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_without_citations_stays(text: str):
    assert read([text]) == (text, [])
    assert read(list(text)) == (text, [])


@pytest.mark.parametrize(("text", "shown", "marks"), CITED)
def test_markers_become_citations(text: str, shown: str, marks: list[tuple[int, int]]):
    expected = [
        CitationAdded(number=number, file_id=f"doc_{number}", filename=f"{number}.md", index=index)
        for number, index in marks
    ]
    assert read([text]) == (shown, expected)
    assert read(list(text)) == (shown, expected)


@given(st.lists(st.text(ALPHABET, max_size=6), max_size=8))
@example(["`", "`", "`\n[1]", "\n```", "\n[1]"])
@example(["\\", "\\", "]", "[1]"])
@example(["[[1", ", ", "2]", "] [", "[[3]", "](x)"])
@example(["```", "`\n ", "\n  >", "```", "`  ", "\n[1]"])
def test_the_split_makes_no_difference(pieces: list[str]):
    whole = "".join(pieces)
    assert read(pieces) == read([whole]) == read(list(whole))


@given(st.text(ALPHABET, max_size=40))
def test_every_citation_lies_where_it_says(text: str):
    shown, citations = read([text])
    for citation in citations:
        marker = f"[{citation.number}]"
        assert shown[citation.index : citation.index + len(marker)] == marker


@given(st.lists(st.text(ALPHABET.replace("[", "").replace("【", ""), max_size=6), max_size=8))
def test_nothing_but_an_open_bracket_is_held_back(pieces: list[str]):
    parser = CitationParser(DOCUMENTS)
    assert [parser.feed(piece).text for piece in pieces] == pieces


def test_text_passes_at_once_unless_it_may_become_a_marker():
    parser = CitationParser(DOCUMENTS)
    assert parser.feed("plain text ").text == "plain text "
    assert parser.feed("`code` and ").text == "`code` and "
    assert parser.feed("[").text == ""
    assert parser.feed("x").text == "[x"
    assert parser.feed("[9").text == ""
    assert parser.feed("9]").text == "[99]"


@pytest.mark.parametrize("text", ["[" + "1, " * 1_000, "[[" + "1, " * 1_000, "[" + "1, " * 1_000 + "1]"])
def test_a_marker_of_too_many_numbers_is_text(text: str):
    assert read([text]) == (text, [])
    assert read(list(text)) == (text, [])


def test_a_long_marker_is_cited_whole():
    text = f"[{', '.join(['12'] * MAX_NUMBERS)}]"
    for pieces in ([text], list(text)):
        assert [citation.number for citation in read(pieces)[1]] == [12] * MAX_NUMBERS


@given(st.lists(st.text("[]【1, x", max_size=40), max_size=8), st.sampled_from(["[", "[[", "【", "[1, ", "[[1, "]))
def test_never_more_than_one_marker_is_held_back(pieces: list[str], repeated: str):
    parser = CitationParser(DOCUMENTS)
    for piece in (*pieces, repeated * 200):
        parser.feed(piece)
    longest_marker = len("[[") + MAX_NUMBERS * (MAX_DIGITS + len(", ")) + len("]]")
    assert len(parser.flush().text) <= longest_marker


@pytest.mark.parametrize("unit", ["[", "[x", "【", "][", "\\[", "`", "~"])
def test_brackets_that_cannot_be_markers_and_long_runs_are_passed_in_one_go(unit: str):
    assert calls_made(lambda: read([unit * 20_000])) < 200


@pytest.mark.parametrize("unit", ["[", "[1", "[[1", "[1, ", "[[1, ", "[1]", "`x", "~", "\\[", "```\n"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_work_grows_with_the_text_and_no_faster(unit: str, size: int):
    def work(count: int) -> int:
        text = unit * count
        return calls_made(lambda: read([text[at : at + size] for at in range(0, len(text), size)]))

    assert work(1_000) <= 2.1 * work(500) + 200


def test_without_documents_text_is_untouched():
    parser = CitationParser({})
    assert parser.feed("【1】[1, 2] [").text == "【1】[1, 2] ["
    assert parser.flush().text == ""
