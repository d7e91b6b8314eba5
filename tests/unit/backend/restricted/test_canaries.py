"""Canaries are found again however they are written, and nothing else is taken for one."""

from hypothesis import given
from hypothesis import strategies as st

from backend.restricted.domain.canaries import canaries_in, document_canary

SECRET = "secret"


def test_a_canary_is_a_plain_word_of_its_document() -> None:
    canary = document_canary(SECRET, "doc_a")
    assert canary.isascii() and canary.isalpha() and canary.islower() and len(canary) == 24
    assert canary == document_canary(SECRET, "doc_a")
    others = {document_canary(SECRET, "doc_b"), document_canary("other", "doc_a")}
    assert len({canary, *others}) == 3


def test_all_canaries_of_a_text_are_found_once_in_order() -> None:
    first, second = document_canary(SECRET, "doc_a"), document_canary(SECRET, "doc_b")
    assert canaries_in(SECRET, f"see {second} and {first}, {second}.") == (second, first)
    assert canaries_in(SECRET, first + second) == (first, second)


@given(st.text(), st.text(alphabet=" -_.\u200b\n0", max_size=3), st.text())
def test_neither_case_width_breaks_nor_direction_hide_one(before: str, between: str, after: str) -> None:
    canary = document_canary(SECRET, "doc_a")
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in canary)
    for written in (between.join(canary), canary.upper(), wide, canary[::-1]):
        assert canaries_in(SECRET, f"{before}.{written}.{after}") == (canary,)


def test_a_canary_of_another_secret_or_with_one_letter_changed_is_none() -> None:
    canary = document_canary(SECRET, "doc_a")
    assert canaries_in("other", canary) == ()
    changed = ("c" if canary[0] == "b" else "b") + canary[1:]
    assert canaries_in(SECRET, changed) == canaries_in(SECRET, canary[1:]) == ()


@given(st.text(alphabet="bcdfghjklmpqrvwx", max_size=200))
def test_letters_by_chance_are_no_canary(letters: str) -> None:
    assert canaries_in(SECRET, letters) == ()
