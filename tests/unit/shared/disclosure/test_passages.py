"""How much of a chunk is too much: each bound just below and just at it.

A word of content shared in a row scores two and a place that only one of the texts has costs one, so the stretches
below are short of the other bounds, and only the one that is meant decides.
"""

import pytest

from shared.disclosure.folding import fold
from shared.disclosure.passages import index_passages, shares_passage, shares_run

_RELEASE = "until the auditor has signed the release form"
_CHUNK = (
    "Crane drivers inspect hooks before dawn, fasten ropes, polish lamps and refill tanks whenever storms approach."
)
_HAN = "吊装班组每日清点钢索并记录损耗随后通知码头值守人员封闭通道"
_LETTERS = "granite paving stones withstand frost unless drainage channels silt up entirely"


def _taken(text: str, chunk: str, user_words: str = "") -> bool:
    return shares_passage(fold(text), index_passages([fold(chunk)], fold(user_words)))


def _shared_run(text: str, chunk: str, user_words: str = "") -> bool:
    return shares_run(fold(text), index_passages([fold(chunk)], fold(user_words)))


@pytest.mark.parametrize(("count", "is_caught"), [(6, False), (7, True)])
@pytest.mark.parametrize("step", [1, -1])
def test_seven_words_in_a_row_are_too_many(count: int, is_caught: bool, step: int):
    run = " ".join(_RELEASE.split()[:count][::step])
    assert _shared_run(f"Nobody knows {run} whatsoever", _RELEASE) == is_caught
    assert _taken(f"Nobody knows {run} whatsoever", _RELEASE) == is_caught


@pytest.mark.parametrize(("count", "is_caught"), [(9, False), (10, True)])
@pytest.mark.parametrize("start", [0, 7, 18])
def test_ten_characters_in_a_row_are_too_many(count: int, is_caught: bool, start: int):
    run = _HAN[start : start + count]
    assert _shared_run(f"据说{run}云云", _HAN) == is_caught
    assert _taken(f"据说{run[::-1]}云云", _HAN) == is_caught


@pytest.mark.parametrize(
    ("text", "is_caught"),
    [
        ("We fasten ropes, polish nothing.", False),
        ("We fasten ropes, polish lamps.", True),
        ("We fastened rope, polishing lamps.", False),  # the words are the same, but no three stand as they do there
        ("We fasten ropes, polishing lamp.", False),
        ("Crane drivers inspect lifts, masts, decks, doors, polish lamps and refill.", True),
        ("Crane drivers inspect lifts, masts, decks, doors, bells, lamps and refill tanks.", False),
        ("Fasten ropes, polish brass, refill.", False),
        ("Fasten ropes, polish brass, refill silos, storms.", False),
        ("Drivers inspect hooks someday dawn.", False),
        ("Drivers inspect hooks someday dawn, chains ropes.", True),
        ("Drivers inspect hooks someday soon, fasten chains, polish.", False),
        ("Inspect hooks before sunset, fasten chains, polish lamps.", True),
        ("Inspect hooks before sunset, twist chains, polish lamps.", False),
    ],
)
def test_words_with_some_replaced_are_caught_from_a_score_of_eight(text: str, is_caught: bool):
    assert not _shared_run(text, _CHUNK)
    assert _taken(text, _CHUNK) == is_caught


@pytest.mark.parametrize(
    ("text", "is_caught"),
    [
        ("吊装班组每日清", False),
        ("吊装班组每日清点", True),
        ("吊装班组此日清点钢", False),
        ("吊装班组乎日清点钢索", True),
        ("吊装班乎每日清乎乎索并记", False),
        ("吊装班乎每日清乎钢索并", True),
    ],
)
def test_characters_with_some_replaced_are_caught_from_a_score_of_sixteen(text: str, is_caught: bool):
    assert not _shared_run(text, _HAN)
    assert _taken(text, _HAN) == is_caught


@pytest.mark.parametrize(
    ("user_words", "is_caught"),
    [
        ("", True),
        ("Who has signed the book?", True),
        ("Is it so that the auditor has left?", True),
        ("Is it so that the auditor has signed?", False),
        ("What if the auditor has signed it?", False),
        ("Is it signed, the release? Who signed the release?", True),
    ],
)
def test_four_words_of_the_users_take_themselves_out_of_a_run(user_words: str, is_caught: bool):
    assert _taken("Nobody knows until the auditor has signed the release.", _RELEASE, user_words) == is_caught


@pytest.mark.parametrize(
    ("user_words", "is_caught"),
    [("", True), ("Why fasten ropes, polish?", True), ("Why fasten ropes, polish lamps?", False)],
)
def test_four_words_of_the_users_take_themselves_out_of_an_alignment(user_words: str, is_caught: bool):
    assert _taken("We fasten ropes, polish lamps.", _CHUNK, user_words) == is_caught


@pytest.mark.parametrize(("count", "is_caught"), [(0, True), (5, True), (6, False)])
def test_six_characters_of_the_users_take_themselves_out(count: int, is_caught: bool):
    user_words = f"请问{_HAN[2 : 2 + count]}吗"
    assert _shared_run(f"据说{_HAN[:10]}云云", _HAN, user_words) == is_caught
    assert _taken(f"据说{_HAN[:10]}云云", _HAN, user_words) == is_caught
    assert _taken(f"据说{_HAN[1:9]}云云", _HAN, user_words) == is_caught
