"""Requests for turns of a key that is at a limit: refused before they are read, as if they had been."""

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from starlette.types import Message, Scope

from backend.foundation.http.services import HttpOptions
from backend.foundation.services.refusal_pace import REFUSALS_A_SECOND, REFUSALS_AT_ONCE, RefusalPace
from backend.identity.domain import Caller, KeyRole, RateLimits
from backend.identity.services import KeyAdministration
from backend.limits.domain.rates import WINDOW_SECONDS, RateAnswer, RateDemand
from backend.limits.memory.rates import MemoryRateStore
from backend.limits.services.known_refusals import LOOK_AGAIN_SECONDS
from backend.limits.services.turn_rates import DefaultLimits, TurnRates
from shared.http_server.connection import CLIENT_LEFT
from shared.models.events import ModelCallStarted, TurnFailed
from tests.fakes.chat_shell_scripted import USAGE, answer
from tests.fakes.clock import FakeClock, Stopwatch
from tests.fakes.http_api import client_of
from tests.fakes.rates import CountedRefusals
from tests.fakes.served_turns import REPORT, ServedApi, serve_api
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.unit.backend.limits.refusals import NONE, ask

LONG = b'{"input": "' + b"a" * 50_000 + b'"}'
HOURS, WAITED_SECONDS = 7200.0, 30.0
OF_THE_REQUEST = ("x-request-id", "date")


class AskedStore(MemoryRateStore):
    """Counts how often it is asked for turns."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        super().__init__(self.clock)
        self.asked = 0

    async def take(self, demand: RateDemand) -> RateAnswer:
        self.asked += 1
        return await super().take(demand)


class BodiesAtRefusals(RefusalPace):
    """Notes, whenever it is asked how long to hold a refusal back, how many bytes there are more than before."""

    def __init__(self, now: Stopwatch) -> None:
        super().__init__(now)
        self.kept_bytes: list[int] = []

    def delay_seconds(self, reason: str) -> float:
        self.kept_bytes.append(tracemalloc.get_traced_memory()[0])
        return super().delay_seconds(reason)


class Patient(RefusalPace):
    """Holds every refusal back for so many seconds, and notes for which reasons."""

    def __init__(self, now: Stopwatch) -> None:
        super().__init__(now)
        self.seconds = 0.0
        self.reasons: list[str] = []
        self.is_asked = asyncio.Event()

    def delay_seconds(self, reason: str) -> float:
        self.reasons.append(reason)
        self.is_asked.set()
        return self.seconds


class LimitedApi:
    """An API with a limit, and what is asked behind it."""

    def __init__(
        self, api: ServedApi, rates: TurnRates, store: AskedStore, watch: Stopwatch, observer: CountedRefusals
    ):
        self.rates = rates
        self.api = api
        self.http = api.http
        self.store = store
        self.watch = watch
        self.observer = observer
        self.keys = KeyAdministration(FakeApiKeyStore(api.turns.state), api.turns.clock, api.turns.state.known_keys)

    def pace(self, pace: RefusalPace) -> None:
        """Let refusals leave as another pace says."""
        services = self.api.app.state.services
        services[HttpOptions] = replace(services[HttpOptions], refusals=pace)

    def pass_a_minute(self) -> None:
        """Let all that has been used be forgotten."""
        self.watch.seconds += WINDOW_SECONDS
        self.store.clock.advance(WINDOW_SECONDS)

    async def other(self, user_id: str = "bob") -> httpx2.AsyncClient:
        """Open a client with a key of its own in the same tenant."""
        _, key = await self.keys.issue(user_id, KeyRole.USER)
        return client_of(self.api.app, key)


@asynccontextmanager
async def limited_api(*scripts: Sequence[Any], tenant: RateLimits = NONE, **limits: int) -> AsyncGenerator[LimitedApi]:
    store, watch, observer = AskedStore(), Stopwatch(), CountedRefusals()
    rates = TurnRates(store, observer, DefaultLimits(RateLimits(**limits), tenant), watch, HOURS)
    async with serve_api(*scripts, rates=rates) as api:
        yield LimitedApi(api, rates, store, watch, observer)


class SlowBody:
    """A body whose second half comes when a test says so."""

    def __init__(self, second_half: bytes = b'"Hi"}') -> None:
        self._second_half = second_half
        self.is_read_now = asyncio.Event()
        self.go = asyncio.Event()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        yield b'{"input": '
        self.is_read_now.set()
        await self.go.wait()
        yield self._second_half


class Unread:
    """A body that notes whether anybody has read it."""

    def __init__(self, body: bytes = b'{"input": "Hi"}') -> None:
        self.is_read = False
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        self.is_read = True
        yield self._body


async def settled() -> None:
    """Let all tasks go on until they wait for what a test has yet to say."""
    for _ in range(500):
        await asyncio.sleep(0)


async def send(client: httpx2.AsyncClient, body: Unread | SlowBody, **headers: str) -> httpx2.Response:
    return await client.post("/v1/responses", content=body, headers={"content-type": "application/json", **headers})


def told(response: httpx2.Response) -> tuple[int, object, dict[str, str]]:
    headers = {name: value for name, value in response.headers.items() if name not in OF_THE_REQUEST}
    return response.status_code, response.json(), headers


async def test_a_second_refusal_is_that_of_the_first_and_reads_and_asks_nothing() -> None:
    async with limited_api(answer("One."), turns_per_minute=1, tokens_per_minute=1000) as limited:
        assert (await ask(limited.http)).status_code == 200
        first, asked = told(await ask(limited.http)), limited.store.asked
        limited.api.turns.state.api_keys.clear()  # a look into it would refuse the key
        for body in (Unread(), Unread(b"{" * 1000)):
            assert told(await send(limited.http, body)) == first
            assert not body.is_read
        assert limited.store.asked == asked
        assert limited.observer.refused == 3
        assert first[0] == 429


async def test_chat_completions_are_refused_for_what_responses_have_used() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        await ask(limited.http)
        await ask(limited.http)
        body, asked = Unread(), limited.store.asked
        refused = await limited.http.post("/v1/chat/completions", content=body)
        assert (refused.status_code, body.is_read, limited.store.asked) == (429, False, asked)


async def test_another_key_and_other_routes_are_served_meanwhile() -> None:
    async with limited_api(answer("One."), answer("Two."), turns_per_minute=1) as limited:
        found = (await ask(limited.http)).json()
        await ask(limited.http)
        assert (await limited.http.get(f"/v1/responses/{found['id']}")).status_code == 200
        async with await limited.other() as client:
            assert (await ask(client)).status_code == 200


async def test_no_key_of_a_tenant_at_its_limit_is_read_and_all_of_them_wait_in_one_line() -> None:
    async with limited_api(answer("One."), tenant=RateLimits(turns_per_minute=1)) as limited:
        limited.pace(patient := Patient(limited.watch))
        await ask(limited.http)
        for number in range(5):
            body = Unread()
            async with await limited.other(f"user-{number}") as client:
                refused = await send(client, body)
            assert (refused.status_code, body.is_read) == (429, False)
            assert refused.json()["error"]["message"].startswith("This tenant may begin 1 turns")
        assert patient.reasons == ["default/tenant"] * 5


async def test_a_key_of_a_refused_tenant_that_is_revoked_is_told_so_whatever_the_others_ask() -> None:
    async with limited_api(answer("One."), tenant=RateLimits(turns_per_minute=1)) as limited:
        limited.pace(Patient(limited.watch))
        await ask(limited.http)
        key, secret = await limited.keys.issue("bob", KeyRole.USER)
        async with client_of(limited.api.app, secret) as revoked, await limited.other() as other:
            assert (await ask(revoked)).status_code == 429
            await limited.keys.revoke(key.id)
            limited.watch.seconds += LOOK_AGAIN_SECONDS
            assert {(await ask(other)).status_code for _ in range(20)} == {429}
            assert (await ask(revoked)).status_code == 401


async def test_a_tenants_limit_is_known_although_each_key_has_one_of_its_own() -> None:
    tenant = RateLimits(turns_per_minute=1)
    async with limited_api(answer("One."), tenant=tenant, tokens_per_minute=1000) as limited:
        await ask(limited.http)
        body = Unread()
        async with await limited.other() as client:
            refused = await send(client, body)
        assert (refused.status_code, body.is_read) == (429, False)
        assert refused.headers["x-ratelimit-remaining-tokens"] == "1000"


async def test_nothing_is_read_of_who_has_all_their_turns_running_until_one_of_them_ends() -> None:
    async with limited_api(answer("One."), turns_at_once=1) as limited:
        key = limited.api.turns.state.api_keys[_only_key(limited)]
        with await limited.rates.take(Caller(user_id="ada", tenant=key.tenant, role=key.role, key_id=key.id)):
            for _ in range(3):
                body = Unread()
                assert ((await send(limited.http, body)).status_code, body.is_read) == (429, False)
        await limited.rates.write()
        assert (await ask(limited.http)).status_code == 200


async def test_a_key_that_is_revoked_is_told_so_within_a_second() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        await ask(limited.http)
        await ask(limited.http)
        await limited.keys.revoke(_only_key(limited))
        assert (await ask(limited.http)).status_code == 429
        limited.watch.seconds += LOOK_AGAIN_SECONDS
        assert [(await ask(limited.http)).status_code for _ in range(3)] == [401, 401, 401]


async def test_what_was_done_under_an_idempotency_key_is_answered_again() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        named = {"Idempotency-Key": "order-17"}
        first = await send(limited.http, Unread(), **named)
        assert (await ask(limited.http)).status_code == 429
        again = await send(limited.http, Unread(), **named)
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        assert (await send(limited.http, Unread())).status_code == 429


async def test_what_a_service_did_for_a_user_is_answered_again_to_that_user_alone() -> None:
    async with limited_api(answer("One."), tenant=RateLimits(turns_per_minute=1)) as limited:
        _, secret = await limited.keys.issue("gateway", KeyRole.SERVICE)
        named, ada, bob = {"Idempotency-Key": "order-17"}, {"X-Ballast-User": "ada"}, {"X-Ballast-User": "bob"}
        async with client_of(limited.api.app, secret) as service:
            first = await send(service, Unread(), **named, **ada)
            again, others = await send(service, Unread(), **named, **ada), await send(service, Unread(), **named, **bob)
        assert (again.status_code, again.json()["id"], others.status_code) == (200, first.json()["id"], 429)


async def test_a_key_that_was_never_used_is_no_way_to_have_a_body_read() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        limited.pace(Patient(limited.watch))
        await send(limited.http, Unread(), **{"Idempotency-Key": "order-17"})
        for key in ("order-18", "a b", "x" * 300):
            body = Unread()
            refused = await send(limited.http, body, **{"Idempotency-Key": key})
            assert (refused.status_code, body.is_read) == (429, False)


async def test_an_idempotency_key_of_another_user_is_none_of_this_one() -> None:
    async with limited_api(answer("One."), tenant=RateLimits(turns_per_minute=1)) as limited:
        named = {"Idempotency-Key": "order-17"}
        await send(limited.http, Unread(), **named)
        body = Unread()
        async with await limited.other() as client:
            refused = await send(client, body, **named)
        assert (refused.status_code, body.is_read) == (429, False)


async def test_one_request_at_a_time_of_a_refused_key_is_read_to_be_answered_again() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        limited.pace(Patient(limited.watch))
        named = {"Idempotency-Key": "order-17"}
        first = await send(limited.http, Unread(), **named)
        slow, other = SlowBody(), Unread()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(send(limited.http, slow, **named))
            await slow.is_read_now.wait()
            refused = await send(limited.http, other, **named)
            slow.go.set()
        assert (refused.status_code, other.is_read) == (429, False)
        assert reading.result().json()["id"] == first.json()["id"]
        assert (await send(limited.http, Unread(), **named)).status_code == 200


async def test_an_answer_that_is_followed_again_keeps_nobody_from_being_read() -> None:
    gate, streamed = asyncio.Event(), b'{"input": "Hi", "stream": true}'
    named, following = {"Idempotency-Key": "order-17"}, list[asyncio.Task[httpx2.Response]]()
    async with limited_api([gate, *answer("One.")], turns_per_minute=1) as limited:
        limited.pace(Patient(limited.watch))
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                following.append(group.create_task(send(limited.http, Unread(streamed), **named)))
                await settled()
            gate.set()
        assert [each.result().status_code for each in following] == [200, 200, 200]


async def test_no_more_than_the_limit_of_parallel_requests_is_granted() -> None:
    limit, parallel = 17, 60
    async with limited_api(*[answer("One.")] * limit, turns_per_minute=limit) as limited:
        found = await asyncio.gather(*(ask(limited.http) for _ in range(parallel)))
        statuses = [each.status_code for each in found]
        assert (statuses.count(200), statuses.count(429)) == (limit, parallel - limit)
        assert limited.observer.refused == parallel - limit


async def test_of_requests_that_come_together_when_one_turn_is_free_one_is_read() -> None:
    async with limited_api(*[answer("One.")] * 2, turns_per_minute=1) as limited:
        limited.pace(Patient(limited.watch))
        await ask(limited.http)
        limited.pass_a_minute()
        bodies = [SlowBody() for _ in range(40)]
        async with asyncio.TaskGroup() as group:
            sent = [group.create_task(send(limited.http, body)) for body in bodies]
            await settled()
            for body in bodies:
                body.go.set()
            async with asyncio.timeout(WAITED_SECONDS):
                await asyncio.wait(sent)
        statuses = [each.result().status_code for each in sent]
        assert (statuses.count(200), statuses.count(429)) == (1, 39)
        assert sum(body.is_read_now.is_set() for body in bodies) == 1


async def test_a_request_that_waits_is_read_when_the_one_before_it_is_refused_for_what_it_says() -> None:
    async with limited_api(*[answer("One.")] * 2, turns_per_minute=1) as limited:
        await ask(limited.http)
        limited.pass_a_minute()
        wrong, right = SlowBody(b"7}"), SlowBody()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(send(limited.http, wrong))
            await wrong.is_read_now.wait()
            second = group.create_task(send(limited.http, right))
            await settled()
            assert not right.is_read_now.is_set()
            wrong.go.set()
            right.go.set()
            async with asyncio.timeout(WAITED_SECONDS):
                await asyncio.wait((first, second))
        assert (first.result().status_code, second.result().status_code) == (400, 200)


async def test_a_key_is_known_however_the_scheme_before_it_is_written() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        await ask(limited.http)
        await ask(limited.http)
        for scheme in ("bearer", "BEARER", "Bearer ", "bEaReR  "):
            body = Unread()
            refused = await send(limited.http, body, authorization=f"{scheme} {limited.api.key}")
            assert (refused.status_code, body.is_read) == (429, False)


async def test_no_body_is_kept_while_its_refusal_is_held_back() -> None:
    async with limited_api(*[answer("One.")] * 4, turns_per_minute=4) as limited:
        limited.pace(callers := BodiesAtRefusals(limited.watch))
        body = LONG[1:-2] + 45_000 * b"a" + b'"}'
        models = b'{"models": ["demo-model", "vendor/large"], ' + body  # one more turn would be granted
        await ask(limited.http)
        await ask(limited.http)
        await ask(limited.http)
        for _ in range(3):
            tracemalloc.start()
            try:
                assert (await send(limited.http, Unread(models))).status_code == 429
            finally:
                tracemalloc.stop()
        assert len(callers.kept_bytes) == 3
        assert max(callers.kept_bytes) < len(body)


async def test_nothing_is_held_back_for_a_client_that_has_left() -> None:
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        await ask(limited.http)
        limited.pace(patient := Patient(limited.watch))
        patient.seconds = HOURS
        left, sent = asyncio.Event(), list[Message]()

        async def receive() -> Message:
            raise AssertionError("nothing of the request is read")

        async def send_on(message: Message) -> None:
            sent.append(message)

        async with asyncio.TaskGroup() as group:
            group.create_task(limited.api.app(request_for(limited.api.key, left), receive, send_on))
            await patient.is_asked.wait()
            left.set()
        assert sent == []


def request_for(key: str, left: asyncio.Event) -> Scope:
    path, given = "/v1/responses", [(b"authorization", f"Bearer {key}".encode())]
    address = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http"}
    peers = {"server": ("ballast.test", 80), "client": ("127.0.0.1", 1), "state": {CLIENT_LEFT: left}}
    return {"type": "http", "http_version": "1.1", "method": "POST", "headers": given, **address, **peers}


async def test_many_refusals_are_held_back() -> None:
    held_back = 5
    async with limited_api(answer("One."), turns_per_minute=1) as limited:
        await ask(limited.http)
        began_at = asyncio.get_running_loop().time()
        many = [ask(limited.http) for _ in range(REFUSALS_AT_ONCE + 1 + held_back)]
        assert {each.status_code for each in await asyncio.gather(*many)} == {429}
        assert asyncio.get_running_loop().time() - began_at >= held_back / REFUSALS_A_SECOND


def _only_key(limited: LimitedApi) -> str:
    (key_id,) = limited.api.turns.state.api_keys
    return key_id


async def test_a_refusal_by_the_provider_of_a_model_is_none_of_the_key() -> None:
    script = [ModelCallStarted(call=1), TurnFailed(error=REPORT, usage=USAGE)]
    async with limited_api(script, answer("Two."), turns_per_minute=9) as limited:
        limited.pace(patient := Patient(limited.watch))
        patient.seconds = HOURS
        assert (await ask(limited.http)).status_code == 429
        assert (await ask(limited.http)).status_code == 200
        assert limited.observer.refused == 0


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/knowledge_bases"])
async def test_wrong_keys_wait_in_one_line_whatever_they_ask_for(path: str) -> None:
    async with limited_api() as limited:
        limited.pace(patient := Patient(limited.watch))
        async with client_of(limited.api.app) as client:
            for number in range(3):
                refused = await client.post(path, headers={"authorization": f"Bearer wrong-{number}"}, json={})
                assert refused.status_code == 401
        assert patient.reasons == ["strangers"] * 3
