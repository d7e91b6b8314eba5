"""One contract for claims of idempotency keys: who stores them, and the `ClaimStore` that finds and forgets them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.conversations.domain.responses import NewTurn
from backend.foundation.domain.idempotency import KEPT_FOR, KeyClaim
from backend.foundation.ports.readiness import ClaimStore
from backend.foundation.sql.idempotency import SqlClaimStore
from shared.errors import KeyHeld, TurnRunning
from tests.contract.store_cases import (
    KINDS,
    T0,
    Stores,
    database_url,
    fake_stores,
    make_conversation,
    make_entry,
    make_item,
    make_turn,
    migrated,
    sql_stores,
)
from tests.fakes.store_claims import FakeClaimStore
from tests.fakes.store_state import StoreState


class Opened(NamedTuple):
    claims: ClaimStore
    stores: Stores


@pytest.fixture(params=KINDS)
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    if request.param == "fake":
        state = StoreState()
        yield Opened(FakeClaimStore(state), fake_stores(state))
        return
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        yield Opened(SqlClaimStore(database), sql_stores(database))


def make_claim(created: str = "resp_a", name: str = "a", claimed_at: datetime = T0) -> KeyClaim:
    return KeyClaim(id=f"key-{name}", fingerprint=f"body-{created}", claimed_at=claimed_at, created=created)


def claiming(turn: NewTurn, claim: KeyClaim) -> NewTurn:
    return turn._replace(claim=claim)


async def test_a_turn_is_stored_with_its_claim(opened: Opened) -> None:
    assert await opened.claims.find("key-a") is None
    await opened.stores.turns.begin(claiming(make_turn(), make_claim()))
    assert await opened.claims.find("key-a") == make_claim()


async def test_a_second_turn_under_the_same_key_leaves_nothing(opened: Opened) -> None:
    await opened.stores.turns.begin(claiming(make_turn(), make_claim()))
    late = claiming(make_turn(None, "resp_b", "conv_b"), make_claim("resp_b", claimed_at=T0 + KEPT_FOR))
    with pytest.raises(KeyHeld):
        await opened.stores.turns.begin(late)
    assert await opened.claims.find("key-a") == make_claim()
    assert await opened.stores.turns.find("resp_b") is None
    assert await opened.stores.conversations.find("conv_b") is None


async def test_a_refused_turn_does_not_use_its_key(opened: Opened) -> None:
    await opened.stores.turns.begin(make_turn())
    with pytest.raises(TurnRunning):
        await opened.stores.turns.begin(claiming(make_turn(1, "resp_b"), make_claim("resp_b")))
    assert await opened.claims.find("key-a") is None


async def test_an_expired_claim_gives_way(opened: Opened) -> None:
    await opened.stores.turns.begin(claiming(make_turn(), make_claim()))
    later = make_claim("resp_b", claimed_at=T0 + KEPT_FOR + timedelta(microseconds=1))
    await opened.stores.turns.begin(claiming(make_turn(None, "resp_b", "conv_b"), later))
    assert await opened.claims.find("key-a") == later


async def test_of_many_at_once_one_turn_begins(opened: Opened) -> None:
    turns = [claiming(make_turn(None, f"resp_{n}", f"conv_{n}"), make_claim(f"resp_{n}")) for n in range(8)]
    outcomes = await asyncio.gather(*(opened.stores.turns.begin(turn) for turn in turns), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [KeyHeld] * 7
    found = await opened.claims.find("key-a")
    assert found is not None
    begun = [turn.response.id for turn in turns if await opened.stores.turns.find(turn.response.id) is not None]
    assert begun == [found.created]


async def test_conversations_and_items_are_stored_with_their_claims(opened: Opened) -> None:
    conversations = opened.stores.conversations
    await conversations.create(make_conversation(), (), (), make_claim("conv_a"))
    with pytest.raises(KeyHeld):
        await conversations.create(make_conversation("conv_b"), (), (), make_claim("conv_b"))
    assert await conversations.find("conv_b") is None
    await conversations.append("conv_a", 0, (make_entry(0),), (make_item(0),), make_claim("msg_0 1", "b"))
    with pytest.raises(KeyHeld):
        await conversations.append("conv_a", 1, (make_entry(1),), (make_item(1),), make_claim("msg_1 1", "b"))
    assert len(await conversations.log("conv_a")) == 1
    assert await opened.claims.find("key-b") == make_claim("msg_0 1", "b")


async def test_old_claims_are_forgotten_oldest_first_and_in_steps(opened: Opened) -> None:
    for hours in range(4):
        claim = make_claim(f"conv_{hours}", str(hours), T0 + timedelta(hours=hours))
        await opened.stores.conversations.create(make_conversation(f"conv_{hours}"), (), (), claim)
    before = T0 + timedelta(hours=3)
    assert [await opened.claims.forget(before, 2) for _ in range(3)] == [2, 1, 0]
    assert [await opened.claims.find(f"key-{hours}") is None for hours in range(4)] == [True, True, True, False]
