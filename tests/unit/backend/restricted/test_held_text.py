"""Text held back: what is asked about it, and what of it may go when."""

from itertools import islice, pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.restricted.domain.outgoing_text import HELD_CJK, HELD_WORDS, OwnWords, PendingCheck, StreamFilterBuffer
from backend.search.domain.shared_runs import holds_any, join_runs
from shared.prompts.knowledge_base import CHINESE_FIGURE_WITHHELD, FIGURE_WITHHELD
from tests.examples import examples

NOBODY = OwnWords("")
PASSAGE = "The escalation ladder begins with the duty engineer and ends with the vault keeper at the northern site."
CHINESE = "值班工程师先通知北区金库的保管员，再由保管员在名册上签字确认。"


FIGURES = ("47 minutes", "eleven hundred days", "3.5 %", "2")


def said(text: str, size: int, own: OwnWords = NOBODY) -> tuple[list[PendingCheck], list[str]]:
    """Say a text in pieces of a size; return what was asked, and what was shown, piece by piece."""
    held, checks, gone = StreamFilterBuffer(own), list[PendingCheck](), list[str]()
    for start in range(0, len(text), size):
        held.add(text[start : start + size])
        check = held.build_pending_check(at_end=False)
        if check is not None:
            checks.append(check)
            gone.append("".join(held.take(at_end=False)))
    check = held.build_pending_check(at_end=True)
    if check is not None:
        checks.append(check)
        gone.append("".join(held.take(at_end=True)))
    assert not held
    return checks, gone


def is_asked(checks: list[PendingCheck], passage: str) -> bool:
    return any(holds_any(passage, join_runs(check.sequences)) for check in checks)


@pytest.mark.parametrize("size", [1, 3, 17, 10_000])
@pytest.mark.parametrize(
    ("before", "run", "behind"),
    [
        ("", "duty engineer and ends with the vault keeper at", ""),
        ("It is well known here that ", "the escalation ladder begins with the duty engineer and", " so it goes on"),
        ("Ladder: ", "**escalation** LADDER — begins\nwith the duty, engineer; and ends", "!"),
    ],
)
def test_nine_words_in_a_row_are_asked_about(size: int, before: str, run: str, behind: str) -> None:
    checks, _ = said(before + run + behind, size)
    assert is_asked(checks, PASSAGE)


@pytest.mark.parametrize("size", [1, 2, 5, 10_000])
def test_fourteen_characters_in_a_row_are_asked_about(size: int) -> None:
    checks, _ = said(f"请看：{CHINESE[3:20]}等等。", size)
    assert is_asked(checks, CHINESE)
    checks, _ = said("通知北区 vault 金库的保管 keeper 员再由保管员", size)
    assert is_asked(checks, CHINESE)


@pytest.mark.parametrize("size", [1, 10_000])
def test_fewer_are_not(size: int) -> None:
    checks, _ = said("The escalation ladder begins with the duty engineer, but then it differs from that.", size)
    assert checks
    assert not is_asked(checks, PASSAGE)
    checks, _ = said("工程师先通知北区金库的保管人以及其他的很多人来处理这件事情", size)
    assert checks
    assert not is_asked(checks, CHINESE)


def test_the_users_own_run_is_not_asked_about_and_one_that_goes_beyond_it_is() -> None:
    own = OwnWords("Is it true that the ladder begins with the duty engineer and ends there?")
    checks, _ = said("Yes: ladder begins with the duty engineer and ends, as you say.", 1, own)
    assert not is_asked(checks, PASSAGE)
    checks, _ = said("Yes: ladder begins with the duty engineer and ends with it.", 1, own)
    assert is_asked(checks, PASSAGE)


def test_nothing_goes_before_so_much_is_held() -> None:
    held = StreamFilterBuffer(NOBODY)
    held.add("word " * (HELD_WORDS - 1))
    assert held.build_pending_check(at_end=False) is None
    held.add("word ")
    assert held.build_pending_check(at_end=False) is not None
    assert "".join(held.take(at_end=False)) == "word " * 8
    held = StreamFilterBuffer(NOBODY)
    held.add("字" * (HELD_CJK - 1))
    assert held.build_pending_check(at_end=False) is None
    held.add("字")
    assert held.build_pending_check(at_end=False) is not None
    assert len(held.take(at_end=False)) == HELD_CJK - 13


def test_other_script_before_does_not_hold_text_for_ever() -> None:
    _, gone = said("one two three four five six seven eight " + "字" * 200, 1)
    assert max(map(len, gone)) < 100


def test_what_is_no_word_is_not_held_for_ever() -> None:
    _, gone = said("x" * 10_000, 100)
    assert len(gone) > 1


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "figure",
    ["1,250 kg", "三百五十元", "twenty five per cent", "8.75 seconds", "one thousand eight hundred and seventy"],
)
def test_a_figure_is_never_shown_in_part(size: int, figure: str) -> None:
    for lead in ("", "one thing is sure before all other things are to be said here now: ", "先说明一下情况，" * 4):
        text = f"{lead}{figure}; and then some more words stand behind it, as many as are held back"
        _, gone = said(text, size)
        mark = next(mark for mark in (FIGURE_WITHHELD, CHINESE_FIGURE_WITHHELD) if mark in "".join(gone))
        assert "".join(gone) == text.replace(figure, mark)
        assert sum(mark in piece for piece in gone) == 1


def test_figures_do_not_change_what_is_asked() -> None:
    asked = [said(f"The ladder begins with {figure} and ends with the vault keeper.", 1)[0] for figure in FIGURES]
    assert len({tuple(check.sequences for check in checks) for checks in asked}) == 1


def test_figures_alone_need_not_wait_for_words() -> None:
    counted = ", ".join(map(str, range(1, 500)))
    _, gone = said(f"So: {counted}", 1)
    assert max(map(len, gone)) < 400
    assert "".join(gone) == "So: " + ", ".join(
        str(number) if number <= 12 else FIGURE_WITHHELD for number in range(1, 500)
    )


def test_a_word_that_is_interrupted_is_read_whole() -> None:
    held = StreamFilterBuffer(NOBODY)
    checks: list[PendingCheck] = []
    for character in "duty engineer and ends with the vault keeper at":
        held.add(character)
        check = held.build_pending_check(at_end=True)
        assert check is not None
        checks.append(check)
        held.take(at_end=True, is_word_over=False)
    assert is_asked(checks, PASSAGE)


def test_a_run_goes_on_behind_an_end() -> None:
    held = StreamFilterBuffer(NOBODY)
    held.add("duty engineer and ends")
    assert held.build_pending_check(at_end=True) is not None
    held.take(at_end=True)
    held.add("with the vault keeper at")
    check = held.build_pending_check(at_end=True)
    assert check is not None
    assert is_asked([check], PASSAGE)


def test_each_run_is_asked_about_once() -> None:
    words = ["".join(letters) for letters in islice(permutations("owner", 4), 100)]
    checks, _ = said(" ".join(words), 1)
    sequences = [sequence.words for check in checks for sequence in check.sequences]
    runs = [found[start : start + 9] for found in sequences for start in range(len(found) - 8)]
    assert len(runs) == len(set(runs)) == 92


TEXT = st.text(st.sampled_from(list("ab 1，字句%\n")) | st.characters(codec="utf-8"), max_size=120)


@examples(200)
@given(pieces=st.lists(TEXT, max_size=12), ends=st.integers(0, 2**12))
def test_all_goes_once_in_order_and_nothing_goes_unasked(pieces: list[str], ends: int) -> None:
    held, gone, count = StreamFilterBuffer(NOBODY), "", 0
    for place, piece in enumerate(pieces):
        held.add(piece)
        at_end = bool(ends >> place & 1)
        if held.build_pending_check(at_end=at_end) is not None:
            shown = held.take(at_end=at_end, is_word_over=False)
            gone, count = gone + "".join(shown), count + len(shown)
    if held.build_pending_check(at_end=True) is not None:
        shown = held.take(at_end=True)
        gone, count = gone + "".join(shown), count + len(shown)
    everything = "".join(pieces)
    assert count == len(everything)
    assert gone == everything or FIGURE_WITHHELD in gone or CHINESE_FIGURE_WITHHELD in gone


@examples(200)
@given(cuts=st.lists(st.integers(0, 80), max_size=20), ends=st.integers(0, 2**21))
def test_however_it_is_cut_a_passage_is_asked_about(cuts: list[int], ends: int) -> None:
    text = f"Well then, {PASSAGE[10:80]}; {CHINESE[2:19]} done"
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    held, checks = StreamFilterBuffer(NOBODY), list[PendingCheck]()
    for number, (start, end) in enumerate(pairwise(places)):
        held.add(text[start:end])
        at_end = bool(ends >> number & 1)
        check = held.build_pending_check(at_end=at_end)
        if check is not None:
            checks.append(check)
            held.take(at_end=at_end, is_word_over=False)
    check = held.build_pending_check(at_end=True)
    checks += [check] if check is not None else []
    assert is_asked(checks, PASSAGE)
    assert is_asked(checks, CHINESE)


@pytest.mark.parametrize("numeral", ["一", "三百五十", "111 ", "one "])
def test_a_row_of_numerals_is_let_go_as_it_comes(numeral: str) -> None:
    held = StreamFilterBuffer(OwnWords(numeral * 5_000))
    text = (numeral * 400)[:400]
    gone = 0
    for at in range(0, len(text), 4):
        held.add(text[at : at + 4])
        if held.build_pending_check(at_end=False) is not None:
            gone += len(held.take(at_end=False, is_word_over=False))
    assert gone > 200
