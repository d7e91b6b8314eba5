"""Over generated conversations, who resends his history gets what he would get who names a response."""

import asyncio
from collections.abc import Callable

from tests.examples import of_many
from tests.unit.backend.turns.resending import Share, open_twins

TURNS = 14


async def played(seed: int, share: Share) -> tuple[int, int]:
    async with open_twins(seed) as twins:
        await twins.play(TURNS)
        share.sent += twins.share.sent
        share.possible += twins.share.possible
        return twins.turns, twins.recognised


def test_a_resent_history_gets_the_bytes_that_the_response_by_its_name_gets(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    share = Share()
    results = [asyncio.run(played(seed, share)) for seed in range(of_many(500, few=40))]
    turns, recognised = (sum(counts) for counts in zip(*results, strict=True))
    assert recognised > turns // 3
    assert share.possible > 1_000 * len(results)
    assert share.value >= 0.98
    record_testsuite_property("turns", turns)
    record_testsuite_property("recognised", recognised)
    record_testsuite_property("share of the possible prefix", share.value)
