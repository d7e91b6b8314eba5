"""Realistic answers come out as a person would mark them, however they are split."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.knowledge.domain.citations import CitationParser, CitedDocument
from tests.examples import examples
from tests.unit.chat_shell.knowledge.marked_answers import MarkedAnswer, marked_answers
from tests.unit.counted_calls import calls_made

LIMITS: Mapping[str, str] = {
    "blanks inside": "an empty box of a list and an element of a list look alike",
    "a backtick alone": "text is not held back until the end of its paragraph",
    "a backtick alone in a paragraph before": "text is not held back until the end of its paragraph",
    "backticks of different length": "text is not held back until the end of its paragraph",
    "a link with brackets in its text": "a citation is shown before the end of the link could come",
    "the end inside double brackets": "whatever stands around a marker, it is one",
    "a file name": "a word, a marker and a full stop look alike",
    "a citation between a word and a bracket": "a citation is shown before the end of the link could come",
}
"""Answers that come out otherwise, and why; who mends one takes it out."""

ANSWERS = tuple(marked_answers())
RIGHT = tuple(answer for answer in ANSWERS if answer.name not in LIMITS)
PIECES = (
    *(
        "[1]",
        "[",
        "]",
        "【1】",
        "［２］",
        "【1†a.md】",
        "[1, 2]",
        "[[1]]",
        "[[1, 2], [3]]",
        "](",
        ")",
        "(",
        "<code>",
        "</code>",
    ),
    *(
        "<pre>",
        "\\[ ",
        "\\]",
        "`",
        "```\n",
        "~~~",
        "\n",
        "\n\n",
        "    ",
        "\t",
        "- ",
        "1. ",
        "> ",
        "https://x.y/",
        "<a:b",
    ),
    *("interval ", "∈ ", "= ", '": ', ", ", " ", "\\", "word"),
)


def read(pieces: Iterable[str], documents: Iterable[int]) -> tuple[str, tuple[tuple[int, int], ...]]:
    parser = CitationParser({number: CitedDocument(f"doc_{number}", f"{number}.md") for number in documents})
    outputs = [*map(parser.feed, pieces), parser.flush()]
    citations = tuple((one.number, one.index) for output in outputs for one in output.citations)
    return "".join(output.text for output in outputs), citations


def test_there_are_two_hundred_answers_with_names_of_their_own():
    names = [answer.name for answer in ANSWERS]
    assert len(names) >= 200
    assert len(set(names)) == len(names)
    assert LIMITS.keys() <= set(names)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_an_answer_is_marked_as_a_person_would(answer: MarkedAnswer):
    for pieces in ([answer.answer], list(answer.answer)):
        is_right = read(pieces, answer.documents) == (answer.text, answer.citations)
        assert is_right is (answer.name not in LIMITS)


@given(st.data())
@examples(400, few=60)
def test_the_split_of_an_answer_makes_no_difference(data: st.DataObject):
    answer = data.draw(st.sampled_from(RIGHT))
    places = data.draw(st.lists(st.integers(0, len(answer.answer)), max_size=12))
    cuts = sorted({0, *places, len(answer.answer)})
    pieces = [answer.answer[start:end] for start, end in pairwise(cuts)]
    assert read(pieces, answer.documents) == (answer.text, answer.citations)


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(1, 9))
@examples(1000, few=150)
def test_the_split_of_anything_makes_no_difference(parts: list[str], size: int):
    text = "".join(parts)
    cut = [text[at : at + size] for at in range(0, len(text), size)]
    whole = read([text], range(1, 4))
    assert read(cut, range(1, 4)) == whole
    assert read(list(text), range(1, 4)) == whole


@pytest.mark.parametrize(
    "unit", ["](", "[[1, 2], ", "<code>[1]", "\\[ [1]", "    [1]\n", "https://x/[1]", "【1†", "= [1]"]
)
@pytest.mark.parametrize("size", [1, 100_000])
def test_work_grows_with_what_stands_before_and_no_faster(unit: str, size: int):
    def work(count: int) -> int:
        text = unit * count
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        return calls_made(lambda: read(pieces, (1, 2, 3, 12)))

    assert work(1_000) <= 2.1 * work(500) + 200
