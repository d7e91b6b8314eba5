"""How samples of a process are counted for the parts of the product and its libraries."""

from tests.bench.profile import Sampled, part_of, samples_in, shares_of
from tests.servers.services import ROOT

TURN = f"start ({ROOT}/backend/turns/services/start_turn.py:30)"
ENCODE = "dumps (/usr/lib/python3.11/json/__init__.py:231)"
SEND = "RequestResponseCycle.send (/env/lib/python3.11/site-packages/uvicorn/protocols/http/httptools_impl.py:500)"
SMALL = "Choice.pick (/env/lib/python3.11/site-packages/smalllib/__init__.py:7)"


def test_a_frame_belongs_to_a_package_of_ours_or_to_a_named_library() -> None:
    assert part_of(TURN) == "backend/turns"
    assert part_of(f"main ({ROOT}/backend/__main__.py)") == "backend/__main__"
    assert part_of(SEND) == "uvicorn"
    assert [part_of(frame) for frame in (ENCODE, SMALL, "_worker", "<module> (<string>:1)")] == [None] * 4


def test_a_sample_counts_for_the_innermost_part_and_for_all_functions_that_wait_for_it() -> None:
    folded = f"{TURN};{SEND};{SMALL};{ENCODE} 3\n{TURN};{TURN} 1\n{ENCODE} 2\n"
    samples = list(samples_in(folded))
    assert samples[1] == Sampled((TURN, TURN), 1)
    parts, own, whole = shares_of(samples)
    assert parts == {"uvicorn": 3, "backend/turns": 1, "the interpreter": 2}
    start, dumps = "start (backend/turns/services/start_turn.py)", "dumps (/usr/lib/python3.11/json/__init__.py)"
    assert own == {dumps: 5, start: 1}
    assert whole[start] == 4
    assert whole["RequestResponseCycle.send (uvicorn/protocols/http/httptools_impl.py)"] == 3
