"""A figure in a code among plain words, and plain words that only decode to something by chance."""

import base64

import pytest

from tests.unit.chat_shell.sealed.gate.planting import HONEST, codes


@pytest.mark.parametrize(
    "coded",
    [
        "NDc1MA==",
        base64.b64encode(b"4750").decode(),
        base64.b64encode(b"ab12").decode(),
        base64.b64encode(b"fee 4750 due").decode(),
        base64.b64encode(b"nearly twelve").decode(),
        base64.b64encode("约百分之三".encode()).decode(),
        base64.b32encode(b"4750").decode(),
        b"4750".hex(),
    ],
)
def test_a_figure_in_a_code_is_seen_among_words(coded: str):
    assert "decoders" in codes(f"{HONEST} The weak point is {coded} among the teams.")
    assert "decoders" in codes(observations=[f"Teams say {coded} of it.", HONEST])


@pytest.mark.parametrize(
    "word", ["industry", "instance", "instant", "instrument", "iridescent", "keywords", "Instinct"]
)
def test_a_long_plain_word_is_no_code(word: str):
    assert codes(f"{HONEST} It concerns the {word} most.") == set()


@pytest.mark.parametrize("word", ["responsibilities", "misunderstandings", "straightforward", "telecommunications"])
def test_the_longest_words_of_a_summary_are_no_code(word: str):
    assert codes(f"{HONEST} It concerns {word} most.") == set()


@pytest.mark.parametrize("word", ["grinders", "deadheading", "Quicksands", "Reappearing", "Reacquiring"])
def test_a_plain_word_is_no_code_whatever_it_decodes_to(word: str):
    assert "decoders" not in codes(f"{HONEST} The {word} of late are a burden.")
