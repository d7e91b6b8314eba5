"""What holds for any text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Blocked, Released
from shared.disclosure.alignment import are_aligned, character_pairs, matches_of_pairs, positions_of
from shared.disclosure.chinese import segment
from shared.disclosure.folding import fold
from tests.examples import examples
from tests.unit.chat_shell.sealed.gate.planting import PASSAGE, case, chunk, codes, reply

_WORDS = PASSAGE.split()
_han = st.text(alphabet="数据安全的一致北辰王建国责任人", max_size=40)


@given(st.binary(max_size=300))
def test_bytes_are_judged_and_never_released(raw: bytes):
    assert isinstance(judge(raw, case()), Blocked)


@examples(50)
@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=140))
def test_any_text_is_judged(summary: str, item: str):
    judged = judge(json.dumps(json.loads(reply()) | {"summary": summary, "risks": [item]}).encode(), case())
    if isinstance(judged, Released):
        assert judge(json.dumps(judged.as_object()).encode(), case()) == judged


@examples(60)
@given(st.integers(0, len(_WORDS) - 8), st.integers(8, 12), st.sampled_from(["Clearly", "In short", "Note that"]))
def test_every_run_of_eight_words_is_blocked(start: int, length: int, lead: str):
    assert "overlap" in codes(f"{lead} {' '.join(_WORDS[start : start + length])}")


@examples(40)
@given(st.integers(0, len(_WORDS) - 8), st.integers(1, 7))
def test_a_run_cut_over_two_fields_is_blocked(start: int, cut: int):
    run = _WORDS[start : start + 8]
    assert "overlap" in codes(observations=[" ".join(run[:cut]), " ".join(run[cut:])])


@given(_han)
def test_cutting_loses_nothing(han: str):
    assert "".join(segment(han)) == han


@given(_han)
def test_a_text_is_aligned_with_itself(han: str):
    positions = positions_of(character_pairs(han))
    matches = matches_of_pairs(character_pairs(han), positions)
    assert are_aligned(matches, max(1, 2 * len(han))) == (len(han) > 1)
    assert not are_aligned(matches, 2 * len(han) + 1)


@given(st.text())
def test_folding_twice_changes_nothing(text: str):
    assert fold(fold(text)) == fold(text)


def test_long_replies_of_one_kind_end():
    for text in (
        "a" * 140,
        "1 " * 70,
        "一" * 140,
        "([" * 70,
        "a." * 70,
        "A " * 70,
        "百分之" * 46,
        '"' * 140,
        "/a" * 70,
    ):
        assert isinstance(judge(reply(text, risks=[text] * 4, observations=[text] * 4), case()), Blocked)


def test_chunks_of_one_kind_end():
    for text in (
        "A" * 20000,
        "A a " * 5000,
        "# " * 9000,
        "| " * 9000,
        "“" * 9000,
        "王" * 9000,
        "a-" * 9000,
        "called A " * 2000,
    ):
        assert prepare([chunk(text, "a.md")], "", []).canaries


def test_nothing_to_compare_with_still_judges():
    assert isinstance(judge(reply(), prepare([], "Where are we weak?", [])), Released)
