"""Who resends their history, over a SQL database as over the fakes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of, of_many
from tests.fakes.store_state import StoreState
from tests.unit.backend.turns.resending import Share, open_twins

PARTS = of_many(10, few=1)
"""A thorough run plays 500 conversations in parts, none of which takes as long as a test may."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", first_of("sqlite", "postgresql"))
async def test_a_resent_history_gets_the_bytes_of_a_named_response(
    kind: str,
    part: int,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    share, turns_played, recognised = Share(), 0, 0
    async with migrated(database_url(kind, request, tmp_path)) as database:

        def turns(_state: StoreState) -> SqlTurnStore:
            return SqlTurnStore(database)

        def conversations(_state: StoreState) -> SqlConversationStore:
            return SqlConversationStore(database)

        for seed in range(part, of_many(500, few=3), PARTS):
            # Each round has a tenant of its own: its twin knows nothing of conversations of the rounds before.
            tenant = f"tenant-{seed}"
            async with open_twins(seed, tenant, turns_class=turns, conversations_class=conversations) as twins:
                await twins.play(12)
                share.sent += twins.share.sent
                share.possible += twins.share.possible
                turns_played += twins.turns
                recognised += twins.recognised
    assert recognised > turns_played // 3
    assert share.value >= 0.98
    record_property("turns", turns_played)
    record_property("share of the possible prefix", share.value)
