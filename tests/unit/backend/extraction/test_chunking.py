"""Cutting documents."""

from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.extraction.domain.blocks import Heading, Paragraph
from backend.extraction.domain.chunking import MAX_CHUNK_TOKENS, MIN_CHUNK_TOKENS, Piece, cut_into_pieces
from shared.tokens import estimate_tokens

SENTENCE = "The river rises in spring and falls in autumn, as it has done for ages. "
CHINESE = "每年春天河水上涨,到了秋天又慢慢回落。"

fragments = st.sampled_from(
    ["a", "word ", "end. ", "\n", "\n\n", "河水", "结束。", "?!) ", "😀", "é", SENTENCE, CHINESE]
)


def repeated(parts: list[str], times: int) -> str:
    return "".join(parts) * times


any_text = st.one_of(
    st.text(max_size=30),
    st.builds(repeated, st.lists(fragments, max_size=12), st.integers(1, 60)),
)
blocks = st.lists(
    st.one_of(
        st.builds(Heading, level=st.integers(1, 6), text=st.text(max_size=30) | st.just("long " * 41)),
        st.builds(Paragraph, text=any_text),
    ),
    max_size=8,
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(blocks)
def test_all_text_is_in_the_pieces_and_all_headings_above_them(document: list[Heading | Paragraph]) -> None:
    pieces = cut_into_pieces(document)
    headings, texts = _divided(document)
    assert squeezed("".join(piece.text for piece in pieces)) == squeezed("".join(texts))
    assert {name for piece in pieces for name in piece.heading_path} == {" ".join(text.split()) for text in headings}


def _divided(document: list[Heading | Paragraph]) -> tuple[list[str], list[str]]:
    """Tell headings over something from the rest: paragraphs, endless headings, headings over nothing."""
    filled = [block for block in document if block.text.strip()]
    headings: list[str] = []
    texts: list[str] = []
    for block, following in zip_longest(filled, filled[1:]):
        is_over_nothing = following is None or (
            isinstance(following, Heading) and isinstance(block, Heading) and following.level <= block.level
        )
        is_above = isinstance(block, Heading) and len(block.text) <= 200 and not is_over_nothing
        (headings if is_above else texts).append(block.text)
    return headings, texts


@given(blocks)
def test_no_piece_is_empty_or_too_large(document: list[Heading | Paragraph]) -> None:
    for piece in cut_into_pieces(document):
        assert piece.text.strip()
        assert estimate_tokens(piece.text) <= MAX_CHUNK_TOKENS
        piece.text.encode()


@pytest.mark.parametrize("sentence", [SENTENCE, CHINESE])
@pytest.mark.parametrize("sentences", [40, 41, 55, 100, 333])
def test_a_long_section_is_cut_between_sentences_into_even_pieces(sentence: str, sentences: int) -> None:
    pieces = cut_into_pieces([Paragraph(text=sentence * sentences)])
    assert len(pieces) > 1
    for piece in pieces:
        assert MIN_CHUNK_TOKENS <= estimate_tokens(piece.text) <= MAX_CHUNK_TOKENS
        assert piece.text.strip().endswith((".", "。"))


def test_small_neighbours_of_a_section_are_joined_and_sections_are_not() -> None:
    document = [
        Heading(level=1, text="Guide"),
        Paragraph(text="One."),
        Paragraph(text="Two."),
        Heading(level=2, text="  Rivers\nand lakes "),
        Paragraph(text="Three."),
        Heading(level=1, text="Index"),
        Paragraph(text="Four."),
    ]
    assert cut_into_pieces(document) == (
        Piece(heading_path=("Guide",), text="One.\n\nTwo."),
        Piece(heading_path=("Guide", "Rivers and lakes"), text="Three."),
        Piece(heading_path=("Index",), text="Four."),
    )


def test_a_cut_falls_between_paragraphs_where_it_can() -> None:
    paragraph = SENTENCE * 12
    pieces = cut_into_pieces([Paragraph(text=paragraph) for _ in range(6)])
    assert {piece.text for piece in pieces} == {paragraph.strip()}


def test_a_wrapped_sentence_is_not_cut_where_its_lines_end() -> None:
    wrapped = "\n".join("and it goes on in the next line of the page " for _ in range(5)) + ".\n"
    items = "".join(f"- item {number} is short\n  and wrapped\n" for number in range(9))
    pieces = cut_into_pieces([Paragraph(text=wrapped * 20 + items)])
    assert len(pieces) > 1
    assert all(piece.text.endswith(".") for piece in pieces[:-1])
    rows = cut_into_pieces([Paragraph(text="".join(f"| row {number} | is never cut |\n" for number in range(200)))])
    assert all(piece.text.startswith("| row") and piece.text.endswith("cut |") for piece in rows)


def test_what_has_no_sentences_is_cut_between_its_lines() -> None:
    pieces = cut_into_pieces([Paragraph(text="\n".join(f"value_{number} = make({number})" for number in range(200)))])
    assert len(pieces) > 1
    assert all(piece.text.startswith("value_") and piece.text.endswith(")") for piece in pieces)


def test_a_heading_over_nothing_is_a_text_of_its_own() -> None:
    document = [Heading(level=1, text="A"), Heading(level=2, text="B"), Heading(level=2, text="C")]
    assert cut_into_pieces(document) == (
        Piece(heading_path=("A",), text="B"),
        Piece(heading_path=("A",), text="C"),
    )


def test_what_is_too_long_for_a_heading_is_text() -> None:
    (piece,) = cut_into_pieces([Heading(level=1, text="x" * 201)])
    assert piece == Piece(heading_path=(), text="x" * 201)


def test_an_endless_line_is_cut_between_characters() -> None:
    pieces = cut_into_pieces([Paragraph(text="😀" * 1000)])
    assert "".join(piece.text for piece in pieces) == "😀" * 1000
    assert len(pieces) == 4


@pytest.mark.parametrize("mark", ["\uff01", "\uff1f", "\uff1b", "\u3002", "! ", "? ", ". "])
def test_sentences_end_at_marks_of_either_script(mark: str) -> None:
    pieces = cut_into_pieces([Paragraph(text=f"\u6bcf\u5e74\u6625\u5929\u6cb3\u6c34\u4e0a\u6da8{mark}" * 100)])
    assert len(pieces) > 1
    assert all(piece.text.strip().endswith(mark.strip()) for piece in pieces)


@pytest.mark.parametrize("text", ["." * 300_000 + "x", ".)" * 150_000 + "x", "x" * 10_000_000])
def test_a_text_made_to_be_slow_is_cut_like_any_other(text: str) -> None:
    assert "".join(piece.text for piece in cut_into_pieces([Paragraph(text=text)])) == text


def test_nothing_gives_nothing() -> None:
    assert cut_into_pieces([]) == ()
    assert cut_into_pieces([Paragraph(text=" \n\t "), Heading(level=1, text=" ")]) == ()
