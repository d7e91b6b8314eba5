"""Which English words are forms of one another, so that another form of a word hides nothing."""

import pytest

from shared.disclosure.english import stem_of
from shared.disclosure.word_lists import lines


@pytest.mark.parametrize(
    "forms",
    [
        "control controls controlled controlling pre-controlled",
        "tray trays",
        "deploy deploys deployed deployment deployments",
        "plan plans planned planning",
        "sell sells sold selling",
        "keep keeps kept keeping",
        "leave leaves left leaving",
        "weak weakly weakness weaknesses",
        "refuse refused refusal refusals",
        "glass glasses",
        "use uses",
    ],
)
def test_forms_of_one_word_have_one_stem(forms: str):
    assert len(set(map(stem_of, forms.split()))) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("sell", "self"), ("business", "busy"), ("moment", "mom"), ("stress", "stre")]
)
def test_words_that_only_look_alike_have_stems_of_their_own(one: str, other: str):
    assert stem_of(one) != stem_of(other)


def test_irregular_forms_are_pairs_of_which_no_form_is_a_base():
    pairs = [line.split() for line in lines("english_irregular")]
    assert all(len(pair) == 2 for pair in pairs)
    forms, bases = {form for form, _ in pairs}, {base for _, base in pairs}
    assert len(forms) == len(pairs)
    assert forms.isdisjoint(bases)
