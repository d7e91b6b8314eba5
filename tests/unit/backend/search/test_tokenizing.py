"""Words of an index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.domain.tokenizing import MAX_TOKEN_CHARACTERS, count_terms, query_terms, tokenize, tokenize_indexed


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


@pytest.mark.parametrize(
    ("text", "further"),
    [
        ("plain words, 3.5 of 24/7", []),
        ("Résumé prêt", ["resume", "pret"]),
        ("Müller, Straße", ["muller", "mueller", "strasse"]),
        ("Łódź, Ørsted, Ålesund", ["lodz", "orsted", "oersted", "alesund", "aalesund"]),
        ("майский", ["маискии"]),
        ("NOR0707-60", ["nor070760", "nor", "0707"]),
        ("1,234.50 and 12\u00a0500", ["123450", "12500"]),
        ("2016-08-15, well-known", ["20160815"]),
        ("产品NOR-0707号", ["nor0707"]),
        ("軟體", ["软体", "软件"]),
        ("用軟體列印", ["用软", "软体", "体列", "列印", "软件", "件打", "打印"]),
        ("软件核心", []),
        ("ガス 한국어", []),
    ],
)
def test_other_forms_of_words_are_indexed_beside_them(text: str, further: list[str]) -> None:
    indexed = tokenize_indexed(text)
    assert indexed.tokens == tokenize(text)
    assert sorted(set(indexed.further)) == sorted(set(further) - set(indexed.tokens))


def test_a_word_of_a_query_is_one_word_in_any_of_its_forms() -> None:
    assert query_terms("Müller buys, müller") == {"müller": ("müller", "muller", "mueller"), "buys": ("buys",)}
    assert query_terms("軟體開") == {"軟體": ("軟體", "软体", "软件"), "體開": ("體開", "体开", "件开")}
    assert list(query_terms("NOR0707-60 pays")) == ["nor0707", "60", "pays", "nor070760", "nor", "0707"]


def test_the_most_frequent_form_of_a_word_counts() -> None:
    terms = query_terms("Müller of nowhere")
    assert count_terms(terms, {"müller": 1, "muller": 1, "mueller": 3, "of": 2}) == {"müller": 3, "of": 2}


@given(st.text())
def test_every_text_is_found_by_all_of_its_own_words(text: str) -> None:
    indexed = tokenize_indexed(text)
    assert indexed.tokens == tokenize(text)
    held = dict.fromkeys([*indexed.tokens, *indexed.further], 1)
    assert set(count_terms(query_terms(text), held)) == set(query_terms(text))
