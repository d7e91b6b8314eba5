"""Limits of keys and tenants at the routes of turns."""

import asyncio
from collections.abc import Sequence

import pytest
from openai import RateLimitError

from backend.identity.domain import Caller, KeyRole, RateLimits
from backend.identity.services import KeyAdministration
from backend.limits.domain.rates import RateAnswer, RateDemand, SettledTurns
from backend.limits.memory.rates import MemoryRateStore
from backend.limits.ports.rates import RateStore
from backend.limits.services.turn_rates import DefaultLimits, TurnRates
from shared.errors import TooManyRequests, Unavailable
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.clock import FakeClock, Stopwatch
from tests.fakes.http_api import client_of
from tests.fakes.openai_house import ADA, BOB, open_house
from tests.fakes.rates import CountedRefusals
from tests.fakes.served_turns import ServedApi, serve_api
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.patience import PATIENCE_SECONDS
from tests.unit.backend.limits.refusals import NONE, ask


class StoreAway:
    """A `RateStore` that is away."""

    async def take(self, demand: RateDemand) -> RateAnswer:
        raise Unavailable("Away.")

    async def settle(self, ended: Sequence[SettledTurns]) -> None:
        raise Unavailable("Away.")

    async def renew(self, held: Sequence[RateDemand]) -> None:
        raise Unavailable("Away.")


class SilentStore(StoreAway):
    """A `RateStore` that never answers."""

    async def take(self, demand: RateDemand) -> RateAnswer:
        await asyncio.Event().wait()
        raise Unavailable("Never.")


def limited(
    key: RateLimits = NONE, tenant: RateLimits = NONE, store: RateStore | None = None, clock: FakeClock | None = None
) -> tuple[TurnRates, CountedRefusals]:
    observer = CountedRefusals()
    chosen = store or MemoryRateStore(clock or FakeClock())
    return TurnRates(chosen, observer, DefaultLimits(key, tenant)), observer


async def test_a_turn_beyond_the_limit_is_a_429_that_says_when_to_come_back() -> None:
    rates, observer = limited(RateLimits(turns_per_minute=2, tokens_per_minute=1000))
    async with serve_api(answer("One."), answer("Two."), rates=rates) as api:
        first, second, third = await ask(api.http), await ask(api.http), await ask(api.http)
    assert [each.status_code for each in (first, second, third)] == [200, 200, 429]
    assert [each.headers["x-ratelimit-remaining-requests"] for each in (first, second, third)] == ["1", "0", "0"]
    assert {each.headers["x-ratelimit-limit-requests"] for each in (first, second, third)} == {"2"}
    assert third.headers["x-ratelimit-reset-requests"] == "1m0s"
    assert third.headers["x-ratelimit-limit-tokens"] == "1000"
    assert third.headers["retry-after"] == "60"
    assert "x-should-retry" not in third.headers
    error = third.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert error["message"].startswith("This key may begin 2 turns")
    assert observer.refused == 1


async def test_openais_client_reads_the_refusal() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=1))
    async with serve_api(answer("One."), rates=rates) as api:
        await api.openai.responses.create(input="Hi")
        with pytest.raises(RateLimitError) as refused:
            await api.openai.chat.completions.create(model="demo-model", messages=[{"role": "user", "content": "Hi"}])
    assert refused.value.response.headers["x-ratelimit-remaining-requests"] == "0"


async def test_wrong_requests_and_streams_carry_the_headers_too() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=5))
    async with serve_api(answer("One."), rates=rates) as api:
        wrong = await api.http.post("/v1/responses", json={"input": 7})
        streamed = await api.http.post("/v1/responses", json={"input": "Hi", "stream": True})
    assert (wrong.status_code, wrong.headers["x-ratelimit-remaining-requests"]) == (400, "5")
    assert streamed.headers["x-ratelimit-remaining-requests"] == "4"


async def test_without_limits_no_header_speaks_of_them() -> None:
    async with serve_api(answer("One.")) as api:
        found = await ask(api.http)
    assert not [name for name in found.headers if name.startswith("x-ratelimit")]


async def admin_key(api: ServedApi) -> str:
    keys = KeyAdministration(FakeApiKeyStore(api.turns.state), api.turns.clock, api.turns.state.known_keys)
    return (await keys.issue("root", KeyRole.ADMIN))[1]


async def test_a_key_has_its_own_limits_in_place_of_the_defaults() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=1))
    async with serve_api(*[answer("One.")] * 4, rates=rates) as api:
        await ask(api.http)
        assert (await ask(api.http)).status_code == 429
        async with client_of(api.app, await admin_key(api)) as admin:
            made = await admin.post("/v1/api_keys", json={"user_id": "ada", "turns_per_minute": 3})
            wrong = await admin.post("/v1/api_keys", json={"user_id": "ada", "turns_per_minute": 0})
        assert (made.status_code, made.json()["turns_per_minute"], made.json()["turns_at_once"]) == (201, 3, None)
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "turns_per_minute")
        async with client_of(api.app, made.json()["key"]) as other:
            assert [(await ask(other)).status_code for _ in range(4)] == [200, 200, 200, 429]


async def test_one_key_at_its_limit_leaves_others_alone_until_the_tenant_is_at_its_own() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=2), RateLimits(turns_per_minute=3))
    await rates.take(ADA)
    await rates.take(ADA)
    with pytest.raises(TooManyRequests, match="This key may begin 2"):
        await rates.take(ADA)
    await rates.take(BOB)
    with pytest.raises(TooManyRequests, match="This tenant may begin 3"):
        await rates.take(BOB)


async def test_a_turn_holds_its_place_until_it_ends_and_its_tokens_count_then() -> None:
    clock = FakeClock()
    rates, _ = limited(RateLimits(turns_at_once=1, tokens_per_minute=5), clock=clock)
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two."), rates=rates) as house:
        running = await house.start()
        with pytest.raises(TooManyRequests, match="1 turns running"):
            await house.start()
        gate.set()
        await running.wait_until_ended()
        await rates.write()
        with pytest.raises(TooManyRequests, match="tokens a minute"):
            await house.start()
        clock.advance(60)
        await house.ask()


async def test_a_place_that_has_not_been_given_back_yet_is_refused() -> None:
    rates, _ = limited(RateLimits(turns_at_once=1))
    with await rates.take(ADA):
        assert await rates.refusal(ADA, asyncio.Event()) is not None
    assert await rates.refusal(ADA, asyncio.Event()) is not None
    assert await rates.refusal(BOB, asyncio.Event()) is None
    await rates.write()
    assert await rates.refusal(ADA, asyncio.Event()) is None
    with await rates.take(ADA):
        assert await rates.refusal(ADA, asyncio.Event()) is not None


async def test_a_request_waits_for_the_turn_of_another_to_begin_and_not_for_its_end() -> None:
    clock, watch = FakeClock(), Stopwatch()
    limits = DefaultLimits(RateLimits(turns_per_minute=2), NONE)
    rates = TurnRates(MemoryRateStore(clock), CountedRefusals(), limits, watch, read_first_seconds=3600)
    with await rates.take(ADA), await rates.take(ADA):
        assert await rates.refusal(ADA, asyncio.Event()) is not None
    clock.advance(60)
    watch.seconds += 60
    assert await rates.refusal(ADA, asyncio.Event()) is None
    waiting = asyncio.create_task(rates.refusal(ADA, asyncio.Event()))
    await asyncio.sleep(0)
    assert not waiting.done()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with await rates.take(ADA):
            assert await waiting is None


@pytest.mark.parametrize(("seconds", "callers"), [(0.05, (ADA, ADA)), (3600, (ADA, BOB))])
async def test_a_request_waits_not_for_ever_for_another_one_and_not_for_that_of_another_key(
    seconds: float, callers: tuple[Caller, ...]
) -> None:
    clock, watch = FakeClock(), Stopwatch()
    limits = DefaultLimits(NONE, RateLimits(turns_per_minute=1))
    rates = TurnRates(MemoryRateStore(clock), CountedRefusals(), limits, watch, read_first_seconds=seconds)
    await rates.take(ADA)
    clock.advance(60)
    watch.seconds += 60
    async with asyncio.timeout(PATIENCE_SECONDS):
        for caller in callers:
            assert await rates.refusal(caller, asyncio.Event()) is None


async def test_several_models_count_as_several_turns() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=3))
    async with open_house(answer("One."), answer("Two."), rates=rates) as house:
        await house.ask(models=["demo-model", "vendor/large"])
        with pytest.raises(TooManyRequests):
            await house.start(models=["demo-model", "vendor/large"])
        assert (await rates.headers(ADA))["x-ratelimit-remaining-requests"] == "1"


async def test_a_request_that_is_refused_gives_its_place_back() -> None:
    rates, _ = limited(RateLimits(turns_at_once=1))
    async with open_house(answer("One."), rates=rates) as house:
        with pytest.raises(Exception, match="conversation"):
            await house.start(conversation="conv_none")
        await rates.write()
        await house.ask()


async def test_a_turn_that_waits_is_counted_once() -> None:
    rates, _ = limited(RateLimits(turns_per_minute=2))
    gate = asyncio.Event()
    async with open_house([gate, *answer("One.")], answer("Two."), rates=rates) as house:
        running = await house.start()
        queued = await house.queue(conversation=running.response.conversation_id)
        gate.set()
        await running.wait_until_ended()
        await house.services.waiting.look()
        ended = await house.services.responses.wait_until_ended(queued)
        assert ended.status.is_terminal
        assert (await rates.headers(ADA))["x-ratelimit-remaining-requests"] == "0"


@pytest.mark.parametrize("store", [StoreAway(), SilentStore()], ids=["away", "silent"])
async def test_while_the_counts_are_away_turns_begin_and_are_counted_as_uncounted(store: RateStore) -> None:
    rates, observer = limited(RateLimits(turns_per_minute=1), store=store)
    async with serve_api(answer("One."), answer("Two."), rates=rates) as api:
        found = [await ask(api.http), await ask(api.http)]
    assert [each.status_code for each in found] == [200, 200]
    assert observer.uncounted == 2
