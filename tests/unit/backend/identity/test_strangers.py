"""Keys that nobody knows: they share a few places, so that they keep nobody else waiting."""

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_hex

import pytest

from backend.identity.domain import ApiKey, KeyRole
from backend.identity.services import KNOWN_SECONDS, STRANGERS_AT_ONCE, Authenticate, KeyAdministration, KnownKeys
from shared.errors import Unauthenticated, Unavailable
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_state import StoreState

MANY = 64


class SlowStore(FakeApiKeyStore):
    """Looks up what is not there until a test says so, and notes how often that happens at a time."""

    def __init__(self, state: StoreState) -> None:
        super().__init__(state)
        self.go = asyncio.Event()
        self.is_busy = asyncio.Event()
        self.looking = self.most = self.asked = 0

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        found = await super().find_by_hash(key_hash)
        if found is None:
            self.asked += 1
            self.looking += 1
            self.most = max(self.most, self.looking)
            self.is_busy.set()
            await self.go.wait()
            self.looking -= 1
        return found


class Replica:
    """What authenticates in one process."""

    def __init__(
        self,
        state: StoreState,
        wait_as_stranger_seconds: float = 60,
        announce: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.store = SlowStore(state)
        self.known = KnownKeys(state.clock, announce)
        self.keys = KeyAdministration(self.store, state.clock, self.known)
        self.authenticate = Authenticate(self.store, state.clock, self.known, None, wait_as_stranger_seconds)

    async def user_of(self, secret: str) -> str:
        return (await self.authenticate.identify(secret)).user_id

    async def refused(self, secret: str, left: asyncio.Event | None = None) -> None:
        with pytest.raises(Unauthenticated):
            await self.authenticate.identify(secret, left)


async def test_however_many_wrong_keys_are_tried_a_right_one_is_looked_up_beside_them() -> None:
    replica = Replica(StoreState())
    _, known = await replica.keys.issue("ada", KeyRole.USER)
    await replica.user_of(known)
    async with asyncio.TaskGroup() as group:
        for _ in range(MANY):
            group.create_task(replica.refused(token_hex()))
        await replica.store.is_busy.wait()
        assert await replica.user_of(known) == "ada"
        replica.store.go.set()
    assert replica.store.most == STRANGERS_AT_ONCE


async def test_a_key_for_which_no_place_becomes_free_in_time_is_told_to_come_again() -> None:
    replica = Replica(StoreState(), wait_as_stranger_seconds=0.02)
    _, secret = await replica.keys.issue("ada", KeyRole.USER)
    async with asyncio.TaskGroup() as group:
        for _ in range(STRANGERS_AT_ONCE):
            group.create_task(replica.refused(token_hex()))
        await replica.store.is_busy.wait()
        with pytest.raises(Unavailable, match="unknown API keys") as refused:
            await replica.user_of(secret)
        replica.store.go.set()
    assert refused.value.retry_after_seconds == 1
    assert await replica.user_of(secret) == "ada"


async def test_for_a_client_that_has_left_nothing_is_looked_up() -> None:
    replica, left = Replica(StoreState()), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(STRANGERS_AT_ONCE):
            group.create_task(replica.refused(token_hex()))
        await replica.store.is_busy.wait()
        for _ in range(MANY):
            group.create_task(replica.refused(token_hex(), left))
        left.set()
        replica.store.go.set()
    assert replica.store.asked == STRANGERS_AT_ONCE


async def test_a_key_is_valid_on_every_replica_as_soon_as_it_is_made_though_it_was_tried_before() -> None:
    state = StoreState()
    here, there = Replica(state), Replica(state)
    for replica in (here, there):
        replica.store.go.set()
        for _ in range(MANY):
            await replica.refused(token_hex())
    _, secret = await here.keys.issue("ada", KeyRole.USER)
    assert [await each.user_of(secret) for each in (there, here)] == ["ada", "ada"]


async def test_a_key_that_was_valid_is_refused_as_soon_as_it_is_revoked_where_replicas_are_told() -> None:
    state = StoreState()
    here = Replica(state)

    async def announce() -> None:
        here.known.forget()

    there = Replica(state, announce=announce)
    here.store.go.set()
    key, secret = await there.keys.issue("ada", KeyRole.USER)
    assert await here.user_of(secret) == "ada"
    await there.keys.revoke(key.id)
    await here.refused(secret)


@pytest.mark.parametrize("seconds", [KNOWN_SECONDS, -1], ids=["later", "by a clock that was set back"])
async def test_a_process_that_is_not_told_refuses_a_revoked_key_within_seconds(seconds: float) -> None:
    state = StoreState()
    here, there = Replica(state), Replica(state)
    here.store.go.set()
    key, secret = await there.keys.issue("ada", KeyRole.USER)
    assert await here.user_of(secret) == "ada"
    await there.keys.revoke(key.id)
    assert await here.user_of(secret) == "ada"
    state.clock.advance(seconds)
    await here.refused(secret)


async def test_a_key_that_is_revoked_while_it_is_read_is_read_again() -> None:
    replica = Replica(StoreState())
    replica.store.go.set()
    key, secret = await replica.keys.issue("ada", KeyRole.USER)
    changes = replica.known.changes
    await replica.keys.revoke(key.id)
    replica.known.note(key.key_hash, key, changes)
    await replica.refused(secret)


async def test_a_key_that_was_revoked_is_looked_up_in_the_places_of_unknown_ones() -> None:
    replica = Replica(StoreState())
    replica.store.go.set()
    key, secret = await replica.keys.issue("ada", KeyRole.USER)
    await replica.user_of(secret)
    await replica.keys.revoke(key.id)
    await replica.refused(secret)
    replica.store.go.clear()
    replica.store.is_busy.clear()
    async with asyncio.TaskGroup() as group:
        for _ in range(MANY):
            group.create_task(replica.refused(secret))
        await replica.store.is_busy.wait()
        replica.store.go.set()
    assert replica.store.most == STRANGERS_AT_ONCE
