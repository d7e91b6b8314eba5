"""Who resends his history, over a SQL database as over the fakes."""

from pathlib import Path

import pytest

from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from tests.contract.store_cases import KINDS, database_url, migrated
from tests.examples import of_many
from tests.fakes.store_state import StoreState
from tests.unit.backend.turns.resending import open_twins


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fake"])
async def test_a_resent_history_gets_the_bytes_of_a_named_response(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with migrated(database_url(kind, request, tmp_path)) as database:

        def turns(_state: StoreState) -> SqlTurnStore:
            return SqlTurnStore(database)

        def conversations(_state: StoreState) -> SqlConversationStore:
            return SqlConversationStore(database)

        for seed in range(of_many(40, few=3)):
            # Each round has a tenant of its own: its twin knows nothing of conversations of the rounds before.
            tenant = f"tenant-{seed}"
            async with open_twins(seed, tenant, turns_class=turns, conversations_class=conversations) as twins:
                await twins.play(12)
                assert twins.recognised
                assert twins.share.value >= 0.98
