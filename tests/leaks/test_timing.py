"""That the searches whose times are compared end as they are meant to, and that a difference is seen."""

from pathlib import Path

import pytest

from tests.leaks.pair import Way
from tests.leaks.timing import compare, measure
from tests.servers.forks import ForkServers

pytestmark = pytest.mark.whole


async def test_each_outcome_is_reached(tmp_path: Path, forks: ForkServers):
    took = await measure(tmp_path, Way(forks=forks), 1)
    assert {outcome: len(times) for outcome, times in took.items()} == {"answer": 1, "nothing": 1, "blocked": 1}


def test_a_difference_in_time_is_seen_in_both_directions():
    found = compare({"answer": [1.0, 1.2], "nothing": [2.0, 2.2], "blocked": [1.0, 1.2]})
    assert found == {"answer, nothing": 1.0, "answer, blocked": 0.5, "nothing, blocked": 1.0}
