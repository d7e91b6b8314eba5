"""What leaves is a function of the words and of where they are parted, not of looks, blanks, capitals and signs."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Released
from shared.disclosure.canonical import compose, pieces
from tests.examples import examples
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply
from tests.unit.shared.disclosure.asking import ASKED, ASKED_CHINESE, SOURCE, codes, released

_CASE = prepare([chunk(SOURCE, "a.md")], ASKED, [])
_CHINESE_CASE = prepare([chunk(SOURCE, "a.md")], ASKED_CHINESE, [])
_STOPS = (".", "!", "?", "。", " …", "!?", "\n", "？")
_PAUSES = (",", " ;", ":", "，", " - ", "—", "、", " (", " / ", "：")
_BLANKS = (" ", "  ", "\t", "\u00a0", "\u2003", "\u3000", " \u200b ", ' "', "” ")
_ACCENTS = str.maketrans("aeiou", "áêïõů")


def _looks(letter: str) -> tuple[str, ...]:
    """Return what reads as a letter: itself, a capital, with an accent, full-width, bold, and with a filler behind."""
    full_width, bold = chr(ord(letter) + 0xFEE0), chr(ord(letter) - ord("a") + 0x1D41A)
    return letter, letter.upper(), letter.translate(_ACCENTS), full_width, bold, letter + "\u200b", letter + "\u00ad"


def _sentences(words: Sequence[str], shortest: int) -> st.SearchStrategy[list[list[list[str]]]]:
    clause = st.lists(st.sampled_from(words), min_size=shortest, max_size=4, unique=True)
    return st.lists(st.lists(clause, min_size=1, max_size=2), min_size=1, max_size=3)


_english = _sentences(
    ["owners", "drift", "slowly", "while", "nobody", "answers", "for", "late", "reviews", "their", "habits", "i"], 2
)
_chinese = _sentences(["责任", "划分", "不够", "清晰", "复核", "往往", "来得", "迟缓", "团队", "习惯"], 2)


@st.composite
def _written(draw: st.DrawFn, sentences: Sequence[Sequence[Sequence[str]]]) -> str:
    """Write words with any look of their letters, any blanks, and any sign that parts as theirs does."""

    def word(plain: str) -> str:
        return "".join(draw(st.sampled_from(_looks(letter))) for letter in plain)

    text = ""
    for clauses in sentences:
        written = [draw(st.sampled_from(_BLANKS)).join(map(word, clause)) for clause in clauses]
        text += (draw(st.sampled_from(_PAUSES)) + " ").join(written) + draw(st.sampled_from(_STOPS)) + " "
    return text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Nd", "Nl", "No"]), max_size=60))
def test_the_canonical_form_of_a_canonical_form_is_itself(text: str):
    once = compose(pieces(text), {})
    assert compose(pieces(once), {}) == once


@examples(150)
@given(st.data(), _english)
def test_two_writings_of_the_same_words_are_judged_and_released_alike(
    data: st.DataObject, sentences: list[list[list[str]]]
):
    verdicts = [judge(reply(data.draw(_written(sentences))), _CASE) for _ in range(2)]
    plainly = ". ".join(", ".join(" ".join(clause) for clause in clauses) for clauses in sentences)
    assert verdicts == [judge(reply(plainly), _CASE)] * 2


@examples(150)
@given(_english, st.lists(_english, max_size=2))
def test_what_is_released_is_released_again_as_it_is(
    summary: list[list[list[str]]], risks: list[list[list[list[str]]]]
):
    def plain(sentences: list[list[list[str]]]) -> str:
        return "! ".join("; ".join(" ".join(clause) for clause in clauses) for clauses in sentences)

    verdict = judge(reply(plain(summary), risks=[plain(risk)[:140] for risk in risks]), _CASE)
    if isinstance(verdict, Released):
        assert judge(json.dumps(verdict.as_object()).encode(), _CASE) == verdict


@examples(100)
@given(_chinese, st.sampled_from("。！？\n."), st.sampled_from("，；：、,"))
def test_chinese_has_one_form_as_well(sentences: list[list[list[str]]], stop: str, pause: str):
    def written(stop: str, pause: str) -> str:
        return stop.join(pause.join("".join(clause) for clause in clauses) for clauses in sentences)

    verdict = judge(reply(written(stop, pause)), _CHINESE_CASE)
    assert verdict == judge(reply(written("。", "，") + "。"), _CHINESE_CASE)
    if isinstance(verdict, Released):
        assert verdict.summary == written("。", "，") + "。"


@pytest.mark.parametrize(
    ("said", "asked", "leaves"),
    [
        ("OWNERS drift; So I'm TOLD (late) “at” best", ASKED, "Owners drift, so I'm told, late, at best."),
        ("re-entry, hand-over and e-mail differ", ASKED, "Re-entry, hand over and e-mail differ."),
        ("the teams’ rules arenʼt kept!?", ASKED, "The teams rules aren't kept."),
        ("a QuillGate is long. quillgate waits.", "Is QuillGate?", "A QuillGate is long. QuillGate waits."),
        ("the smörgås is late", "What of smörgås?", "The smorgas is late."),
        ("責任劃分「不清」；複核不及時!", ASKED_CHINESE, "责任划分不清，复核不及时。"),
    ],
)  # fmt: skip
def test_capitals_blanks_and_signs_are_placed_by_code(said: str, asked: str, leaves: str):
    assert released(said, asked=asked).summary == leaves


@pytest.mark.parametrize(
    "sign", ["☃", "`", "*", "_", "#", "|", "@", "<b>", "\\", "[", "=", "→", "a\u0336", "⠁", "~", "{"]
)
def test_a_sign_that_no_sentence_needs_is_none_of_the_words(sign: str):
    assert codes("Owners drift and nobody answers.") == set()
    assert "markup" in codes(f"Owners drift {sign} and nobody answers.")


@pytest.mark.parametrize("word", ["οwners", "оwners", "влага", "ひらがな", "한글", "αβγ", "𠮷野"])
def test_a_word_in_another_script_is_no_word(word: str):
    assert "unicode" in codes(f"Owners drift and {word} answers.")


@pytest.mark.parametrize("said", ["。。。", "- - -", "\u200b\u200b", "“ ”", "…"])
def test_a_field_without_a_word_is_no_answer(said: str):
    assert codes(said)
    assert codes("Owners drift and nobody answers.", risks=[said]) == {"schema"}
