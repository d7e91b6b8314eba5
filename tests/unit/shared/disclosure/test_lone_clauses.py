"""What is said of a bare list of single words."""

import pytest

from shared.disclosure.canonical import pieces
from shared.disclosure.words import Finding, find_repeated
from shared.models.safe_summary import GateCode


def test_a_bare_list_is_told_as_it_reads():
    found = list(find_repeated(pieces("We watch the doors: prices, volumes, penalties")))
    assert found == [Finding(GateCode.DECODERS, "prices, volumes, penalties")]


def test_a_sentence_of_two_single_words_is_a_list():
    assert list(find_repeated(pieces("Practice is uneven. Pair, none."))) == [Finding(GateCode.DECODERS, "pair, none")]
    assert not list(find_repeated(pieces("Pair newcomers with others. Slowly, this helps.")))


def test_two_single_words_before_a_sentence_are_a_list():
    found = list(find_repeated(pieces("Practice is uneven. Pair, single, pair this deserves attention.")))
    assert found == [Finding(GateCode.DECODERS, "pair, single")]
    assert not list(find_repeated(pieces("Owners drift, wait, guess.")))


@pytest.mark.parametrize("joining", ["and", "or"])
def test_a_list_with_a_comma_before_its_last_item_is_told_as_one_without(joining: str):
    assert not list(find_repeated(pieces(f"Review, update, {joining} share the plan.")))
    assert not list(find_repeated(pieces(f"Review, update {joining} share the plan.")))
    for longer in (f"Pair, single, other, {joining} more of them.", f"Pair, single, other {joining} more of them."):
        assert list(find_repeated(pieces(longer))), longer
