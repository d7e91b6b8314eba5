"""An answer is in the question's language; a translation would be a copy that no other rule sees."""

import pytest

from shared.disclosure.languages import Language, language_of
from tests.unit.shared.disclosure.asking import ASKED, ASKED_CHINESE, SOURCE, SOURCE_CHINESE, codes

_ENGLISH, _CHINESE = "Owners drift and nobody answers.", "责任划分不清，复核不够及时。"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (_ENGLISH, Language.ENGLISH),
        (_CHINESE, Language.CHINESE),
        ("責任劃分不清", Language.CHINESE),
        ("SLA 责任划分不清", Language.CHINESE),
        ("Owners of 责任 drift and nobody answers", Language.ENGLISH),
        ("Die Zuständigkeit ist unklar und niemand prüft", Language.OTHER),
        ("ответственность не ясна", Language.OTHER),
        ("12 … 3", None),
        ("", None),
    ],
)
def test_the_language_is_that_of_most_words(text: str, language: Language | None):
    assert language_of(text) is language


@pytest.mark.parametrize("over", [SOURCE, SOURCE_CHINESE])
@pytest.mark.parametrize(("asked", "fits", "other"), [(ASKED, _ENGLISH, _CHINESE), (ASKED_CHINESE, _CHINESE, _ENGLISH)])
def test_an_answer_is_in_the_language_of_the_question_whatever_the_sources_is(
    over: str, asked: str, fits: str, other: str
):
    assert codes(fits, over, asked) == set()
    assert codes(other, over, asked) == {"language"}


@pytest.mark.parametrize(
    ("over", "fits", "other"), [(SOURCE, _ENGLISH, _CHINESE), (SOURCE_CHINESE, _CHINESE, _ENGLISH)]
)
def test_without_a_word_of_the_users_it_is_in_the_sources(over: str, fits: str, other: str):
    assert codes(fits, over, "") == set()
    assert codes(other, over, "") == {"language"}


def test_words_of_a_third_language_are_no_answer():
    assert "language" in codes("Niemand weiss wer hier wohin kommt.")
