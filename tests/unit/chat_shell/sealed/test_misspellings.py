"""Slips in frequent words are mended; words that may be meant as they stand are left alone."""

import pytest

from chat_shell.sealed.pre_screen import respell


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("how mcuh do teh people recieve", "how much do the people receive"),
        ("wich adress, and waht comittee", "which address, and what committee"),
        ("ten of form from trial trail", "ten of form from trial trail"),
        ("okafor kubernetes re-wich o'teh ¤teh x", "okafor kubernetes re-wich o'teh ¤teh x"),
        ("ohw teh 多少teh", "ohw the 多少teh"),
    ],
)
def test_slips_behind_the_first_letter_of_a_frequent_word_are_mended(written: str, meant: str):
    assert respell(written) == meant
