"""A run of letters is found wherever it begins, and the user's own is not."""

import random

import pytest

from chat_shell.sealed.gate.overlap import RUN_LETTERS, passages, shares_run

CHUNK = "".join(random.Random(4).choices("abcdefghijklmnop", k=200))
BEFORE, BEHIND = "q" * 40, "z" * 40


@pytest.mark.parametrize("start", range(len(CHUNK) - RUN_LETTERS + 1))
def test_every_run_is_found(start: int):
    known = passages(["first text", CHUNK], "")
    run = CHUNK[start : start + RUN_LETTERS]
    assert shares_run(f"{BEFORE} {run[:7]} {run[7:]} {BEHIND}", known)
    assert not shares_run(f"{BEFORE}{run[:-1]}", known)
    assert not shares_run(f"{BEFORE} {run} {BEHIND}", passages([CHUNK], f"I wrote {run} myself"))


def test_no_run_goes_from_one_chunk_into_the_next():
    half = RUN_LETTERS // 2
    known = passages([CHUNK[:half], CHUNK[half:RUN_LETTERS]], "")
    assert not shares_run(CHUNK[:RUN_LETTERS], known)
