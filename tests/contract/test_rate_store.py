"""One contract for every `RateStore`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from backend.identity.domain import RateLimits
from backend.limits.domain.rates import LimitedParty, RateDemand, SettledTurns
from backend.limits.memory.rates import MemoryRateStore
from backend.limits.ports.rates import RateStore
from backend.limits.redis.rates import RedisRateStore
from shared.clock import SystemClock
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_SECONDS
from tests.servers.valkey import patient_client


class Replicas(NamedTuple):
    """The same counts as two replicas see them; in memory there is but one."""

    here: RateStore
    there: RateStore


@pytest.fixture(params=("memory", "redis"))
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[Replicas]:
    if request.param == "memory":
        store = MemoryRateStore(SystemClock())
        yield Replicas(store, store)
        return
    clients: list[Any] = [patient_client(request.getfixturevalue("valkey_url")) for _ in range(2)]
    yield Replicas(*(RedisRateStore(client) for client in clients))
    for client in clients:
        await client.aclose()


def demand(lease_id: str, *, key: str = "a", turns: int = 1, begun: int | None = None, **limits: int) -> RateDemand:
    parties = (LimitedParty(f"key:{key}", RateLimits(**limits)),)
    return RateDemand("default", parties, turns, turns if begun is None else begun, lease_id)


async def test_of_200_parallel_turns_on_two_replicas_exactly_the_limit_is_granted(replicas: Replicas) -> None:
    stores = [replicas.here, replicas.there] * 100
    demands = [demand(f"l{number}", turns_per_minute=37) for number in range(200)]
    answers = await asyncio.gather(*(store.take(each) for store, each in zip(stores, demands, strict=True)))
    assert sum(answer.is_granted for answer in answers) == 37
    refused = [answer for answer in answers if not answer.is_granted]
    assert all(0 < answer.wait_seconds <= 60 and answer.uses[0].turns == 37 for answer in refused)
    assert all(answer.wait_seconds - 1 <= answer.uses[0].sure_seconds <= answer.wait_seconds for answer in refused)


async def test_of_200_parallel_turns_exactly_as_many_run_as_may(replicas: Replicas) -> None:
    stores = [replicas.here, replicas.there] * 100
    demands = [demand(f"l{number}", turns_at_once=11) for number in range(200)]
    answers = await asyncio.gather(*(store.take(each) for store, each in zip(stores, demands, strict=True)))
    granted = [each for each, answer in zip(demands, answers, strict=True) if answer.is_granted]
    assert len(granted) == 11
    await replicas.there.settle([SettledTurns(granted[0], 0)])
    assert (await replicas.here.take(demand("later", turns_at_once=11))).is_granted
    refused = await replicas.here.take(demand("too many", turns_at_once=11))
    assert (refused.is_granted, refused.uses[0].sure_seconds) == (False, 0)


async def test_it_is_not_sure_that_one_turn_is_refused_where_several_were(replicas: Replicas) -> None:
    refused = await replicas.here.take(demand("l1", turns=4, turns_per_minute=3))
    assert (refused.is_granted, refused.uses[0].sure_seconds) == (False, 0)
    assert (await replicas.here.take(demand("l2", turns_per_minute=3))).is_granted


async def test_parties_count_for_themselves_and_a_refusal_counts_nowhere(replicas: Replicas) -> None:
    tenant = LimitedParty("tenant", RateLimits(turns_per_minute=3))

    def of(key: str, lease_id: str) -> RateDemand:
        own = LimitedParty(f"key:{key}", RateLimits(turns_per_minute=2))
        return RateDemand("default", (own, tenant), 1, 1, lease_id)

    granted = [(await replicas.here.take(of(key, f"l{number}"))).is_granted for number, key in enumerate("aaabb")]
    assert granted == [True, True, False, True, False]
    seen = await replicas.there.take(of("b", "")._replace(turns=0, begun=0))
    assert [use.turns for use in seen.uses] == [1, 3]
    assert [use.sure_seconds > 0 for use in seen.uses] == [False, True]


async def test_what_uses_up_the_last_of_a_limit_says_so_at_once(replicas: Replicas) -> None:
    sure = [
        (await replicas.here.take(demand(f"l{number}", turns_per_minute=3))).uses[0].sure_seconds for number in range(3)
    ]
    assert sure[:2] == [0, 0]
    assert 0 < sure[2] <= 60
    assert 0 < (await replicas.there.take(demand("", turns=0, turns_per_minute=3))).uses[0].sure_seconds <= sure[2]


async def test_tokens_are_refused_once_they_are_used(replicas: Replicas) -> None:
    first, second = demand("l1", tokens_per_minute=100), demand("l2", tokens_per_minute=100)
    assert (await replicas.here.take(first)).is_granted
    assert (await replicas.there.take(second)).is_granted
    await replicas.here.settle([SettledTurns(first, 99)])
    assert (await replicas.there.take(demand("l3", tokens_per_minute=100))).uses[0].tokens == 99
    await replicas.there.settle([SettledTurns(second, 5)])
    refused = await replicas.here.take(demand("l4", tokens_per_minute=100))
    assert not refused.is_granted
    assert refused.uses[0].tokens == 104
    assert 0 < refused.wait_seconds <= 60


async def test_a_repeated_command_counts_once(replicas: Replicas) -> None:
    asked = demand("l1", turns_per_minute=5, turns=2)
    for _ in range(3):
        answer = await replicas.here.take(asked)
        assert answer.is_granted
        assert (answer.uses[0].turns, answer.uses[0].running) == (2, 2)
    for _ in range(2):
        await replicas.there.settle([SettledTurns(asked, 10)])
    seen = (await replicas.here.take(demand("", turns=0, turns_per_minute=5))).uses[0]
    assert (seen.turns, seen.tokens, seen.running) == (2, 10, 0)


async def test_a_turn_that_has_waited_takes_a_place_and_no_part_of_the_minute(replicas: Replicas) -> None:
    answer = await replicas.here.take(demand("l1", begun=0, turns_per_minute=1, turns_at_once=1))
    assert answer.is_granted
    assert (answer.uses[0].turns, answer.uses[0].running) == (0, 1)
    assert not (await replicas.here.take(demand("l2", begun=0, turns_per_minute=1, turns_at_once=1))).is_granted


async def test_the_wait_ends_when_the_oldest_use_is_forgotten(request: pytest.FixtureRequest) -> None:
    client: Any = patient_client(request.getfixturevalue("valkey_url"))
    store = RedisRateStore(client, window_seconds=1)
    loop, sure_until, refused = asyncio.get_running_loop(), 0.0, 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await store.take(demand("l0", turns_per_minute=1))).is_granted
        while True:
            asked_at = loop.time()
            answer = await store.take(demand(f"l{refused}-again", turns_per_minute=1))
            if answer.is_granted:
                break
            sure_until = max(sure_until, asked_at + answer.uses[0].sure_seconds)
            refused += 1
    assert loop.time() >= sure_until > 0 or not refused
    await client.aclose()


AN_HOUR = 3600


async def test_a_clock_that_is_set_back_refuses_nobody_until_it_is_as_late_again() -> None:
    clock = FakeClock()
    store = MemoryRateStore(clock)
    assert (await store.take(demand("l1", turns_per_minute=1))).is_granted
    clock.advance(-1)
    assert not (await store.take(demand("l2", turns_per_minute=1))).is_granted
    clock.advance(-AN_HOUR)
    assert (await store.take(demand("l2", turns_per_minute=1))).is_granted


@pytest.mark.parametrize(("ahead_seconds", "is_granted"), [(1, False), (AN_HOUR, True)])
async def test_a_clock_of_redis_that_is_set_back_refuses_nobody_for_long(
    request: pytest.FixtureRequest, ahead_seconds: int, is_granted: bool
) -> None:
    client: Any = patient_client(request.getfixturevalue("valkey_url"))
    seconds, _ = await client.time()
    await client.hset("ballast:rate:{default}:key:a:turns", seconds + ahead_seconds, 1)
    answer = await RedisRateStore(client).take(demand("l1", turns_per_minute=1))
    assert answer.is_granted is is_granted
    await client.aclose()


async def test_the_place_of_a_turn_outlives_its_process_only_while_it_is_renewed(
    request: pytest.FixtureRequest,
) -> None:
    client: Any = patient_client(request.getfixturevalue("valkey_url"))
    lasting, short = RedisRateStore(client), RedisRateStore(client, lease_seconds=0)
    held = demand("l1", turns_at_once=1)
    assert (await short.take(held)).is_granted
    await lasting.renew([held])
    assert not (await short.take(demand("l2", turns_at_once=1))).is_granted
    await short.renew([held])
    assert (await short.take(demand("l3", turns_at_once=1))).is_granted
    await client.aclose()
