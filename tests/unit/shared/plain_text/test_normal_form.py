"""One form for what looks alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.plain_text.normal_form import is_cjk, is_invisible, normal_form, split_by_script, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Two\t words\n", "two words"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("in\u200bvi\u2060si\u00adble \u202eorder\U000e0041", "invisible order"),
        ("c\u0336a\u0301fe\u20dd café", "cafe cafe"),
        ("⑫ ² ﬁ Straße", "12 2 fi strasse"),
        ("数\u200d据 \ufe0f安全", "数据 安全"),
        ("tab\x00null", "tabnull"),
        ("a\u3164b\u2800c", "abc"),
    ],
)
def test_what_looks_alike_reads_alike(text: str, expected: str):
    assert normal_form(text) == expected


@given(st.text())
def test_a_normal_form_is_its_own(text: str):
    once = normal_form(text)
    assert normal_form(once) == once
    assert not any(is_invisible(character) for character in once)


@given(st.text(), st.text())
def test_words_of_two_texts_are_the_words_of_both(left: str, right: str):
    assert words(f"{left} \n {right}") == words(left) + words(right)


def test_words_are_runs_of_letters_and_digits_or_one_cjk_character():
    found = words("Re-use 数据3个, don't_stop がX")
    assert found == ["re", "use", "数", "据", "3", "个", "don", "t", "stop", "か", "x"]
    assert split_by_script(found) == (["re", "use", "3", "don", "t", "stop", "x"], ["数", "据", "个", "か"])


def test_cjk_is_han_and_kana():
    assert all(is_cjk(character) for character in "数が㐀𠀀ㄅ")
    assert not any(is_cjk(character) for character in "aé3，한")
