"""Over generated conversations, who resends their history gets what they would get who names a response."""

import asyncio
from collections.abc import Callable

import pytest

from tests.examples import of_many
from tests.unit.backend.turns.resending import Share, open_twins

TURNS = 14


async def played(seed: int, share: Share) -> tuple[int, int, int]:
    async with open_twins(seed) as twins:
        await twins.play(TURNS)
        share.sent += twins.share.sent
        share.possible += twins.share.possible
        return twins.turns, twins.recognised, twins.withheld


PARTS = of_many(10, few=1)
"""A thorough run plays 500 conversations in parts, none of which takes as long as a test may."""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_resent_history_gets_the_bytes_that_the_response_by_its_name_gets(
    part: int, record_property: Callable[[str, object], None]
) -> None:
    share = Share()
    seeds = range(part, of_many(500, few=25), PARTS)
    results = [asyncio.run(played(seed, share)) for seed in seeds]
    turns, recognised, withheld = (sum(counts) for counts in zip(*results, strict=True))
    assert recognised > turns // 3
    assert withheld > len(results) // 4
    assert share.possible > 1_000 * len(results)
    assert share.value >= 0.98
    record_property("turns", turns)
    record_property("recognised", recognised)
    record_property("share of the possible prefix", share.value)
