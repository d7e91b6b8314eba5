"""Words of an index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.domain.tokenizing import MAX_TOKEN_CHARACTERS, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("The Quick, quick fox!", ["the", "quick", "quick", "fox"]),
        ("snake_case e-mail v2.0", ["snake", "case", "e", "mail", "v2", "0"]),
        ("差旅费报销", ["差旅", "旅费", "费报", "报销"]),
        ("茶", ["茶"]),
        ("报销，发票！（单据）", ["报销", "发票", "单据"]),
        ("café, 茶", ["café", "茶"]),
        ("使用Kubernetes部署", ["使用", "kubernetes", "部署"]),
        ("2010年", ["2010", "年"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("École ÉCOLE", ["école", "école"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("한국어", ["한국", "국어"]),
        ("\U00020000\U00020001", ["\U00020000\U00020001"]),
        ("😀 \u202e\u200b \x00 '\"*()", []),
    ],
)
def test_words_are_lower_case_and_unspaced_scripts_are_pairs(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(st.text())
def test_tokens_hold_nothing_that_an_index_would_split_or_fold(text: str) -> None:
    for token in tokenize(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARACTERS
        assert not any(character.isspace() for character in token)
        assert all(character.isalnum() for character in token if character < "\x80")
        assert token.encode("utf-8").lower() == token.encode("utf-8")


def test_an_endless_word_is_known_by_its_beginning() -> None:
    assert tokenize("x" * 1000) == ["x" * MAX_TOKEN_CHARACTERS]
