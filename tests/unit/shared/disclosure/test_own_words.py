"""What the user wrote is theirs, in the forms that they may have meant, and no longer than it is recent."""

import pytest

from shared.disclosure.own_words import MAX_USER_CHARACTERS, OwnWords
from tests.unit.shared.disclosure.asking import codes

_OVER = "It was signed by Joan Wrexley. They keep the obelisk and the quvvex."


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The weak points are obelisks.", "Is the obelisk to blame?"),
        ("The weak point is the obelisk.", "Are (obelisks) to blame?"),
        ("The weak point is the quvvex.", "Is it “ｑｕｖｖｅｘ”?"),
    ],
)
def test_a_word_of_the_users_and_its_forms_are_theirs(said: str, asked: str):
    assert codes(said, _OVER) != set()
    assert codes(said, _OVER, asked) == set()


@pytest.mark.parametrize("asked", ["Is WREXLEY to blame?", "Is Wrexley's list to blame?"])
def test_a_name_of_the_source_is_nobodys(asked: str):
    assert codes("The weak point is Wrexley.", _OVER, asked) >= {"identifiers"}


@pytest.mark.parametrize("asked", ["Is the wrex to blame?", "Is the list to blame?", "What of the obelis or quvve?"])
def test_a_part_of_a_word_is_another_word(asked: str):
    assert codes("The weak point is Wrexley.", _OVER, asked) == {"identifiers"}
    assert codes("The weak point is the quvvex.", _OVER, asked) == {"decoders"}


@pytest.mark.parametrize(("asked", "is_own"), [("深井库房怎么样？", True), ("库房怎么样？", False)])
def test_chinese_words_of_the_users_are_theirs_where_they_stand_together(asked: str, is_own: bool):
    over = "所谓深井库房，即无人时的存货。"
    assert (codes("薄弱之处在于深井的做法。", over, asked) == set()) == is_own


def test_only_the_newest_of_the_users_words_are_theirs():
    word = "obelisk"
    rest = "why " * MAX_USER_CHARACTERS
    assert OwnWords.of(rest + word).holds(word)
    assert OwnWords.of((word + " " + rest)[:MAX_USER_CHARACTERS]).holds(word)
    assert not OwnWords.of((word + " " + rest)[: MAX_USER_CHARACTERS + len(word)]).holds(word)


def test_his_spelling_is_used_where_it_has_a_capital_inside():
    spelled = OwnWords.of("Does QuillGate (our SLA) Help the iOS team?").spellings
    assert spelled == {"quillgate": "QuillGate", "sla": "SLA", "ios": "iOS"}
