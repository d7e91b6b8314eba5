"""A backend of a simulation: the product's services of turns over the doubles, and its answers to clients."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import orjson
from fastapi import Request, Response

from backend.chat_shell_client.failover import FailoverChatShell
from backend.conversations.domain.leases import LeaseTerms
from backend.foundation.http.errors import status_of
from backend.foundation.http.idempotency import Once
from backend.foundation.services.admission import Admission
from backend.foundation.services.idempotency import OncePerKey
from backend.foundation.services.supervision import Supervisor, result_or_error
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.presence import RedisPresence
from backend.streams.redis.stop_signals import RedisStopSignals
from backend.streams.services.follow_events import LATE_SECONDS, OPENING_SECONDS
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS
from backend.turns.http.event_stream import ApiFormat
from backend.turns.http.routes import ResponsesFormat
from backend.turns.http.turn_answers import TurnEndpoint, one_answer
from backend.turns.services.queue.begin_waiting import LOOK_SECONDS
from backend.turns.services.run.checkpoints import CHECKPOINT_SECONDS
from shared.errors import BallastError, ChatShellUnavailable
from shared.models.values import JsonObject
from tests.fakes.openai_house import ADA, SECRET, TurnHouse
from tests.fakes.parsed_requests import parse_turn_request
from tests.fakes.store_claims import FakeClaimStore
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_turns import FakeTurnStore
from tests.fakes.store_waiting import FakeWaitingTurnStore
from tests.fakes.supervision import RecordingFailures
from tests.simulation.database import Database, RemoteStore
from tests.simulation.link import LinkedChatShell, Target
from tests.simulation.network import Requests, Route
from tests.simulation.valkey import Valkey, ValkeyClient
from tests.simulation.world import MemberLoop, World

LEASE_SECONDS = 9.0
"""The default of `BACKEND_TURN_LEASE_SECONDS`."""

RETENTION_SECONDS = 600.0

PRESENCE_SECONDS = 2.0
"""Four times as rare as in the product, since a third of all that runs would be looks that find nothing new."""

Stores = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
RARE_LOOKS = 2
STORES: Stores = (FakeTurnStore, FakeConversationStore, FakeWaitingTurnStore)


@dataclass
class Surroundings:
    """What a backend reaches, and over which routes: one to each store, and one to each chat_shell in its target.

    `stores` are the classes of its stores, in which a test may plant a fault.
    """

    world: World
    database: Database
    valkey: Valkey
    to_database: Route
    to_valkey: Route
    targets: list[Target]
    stores: Stores = STORES


class Exchange:
    """A client's connection as the backend sees it."""

    def __init__(self, deliver: Callable[[dict[str, Any]], None]) -> None:
        self._deliver = deliver
        self._has_left = asyncio.Event()
        self.named: dict[str, Any] = {}
        """What the headers of an answer say."""

    async def receive(self) -> dict[str, Any]:
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self._deliver({**message, **self.named} if "status" in message else message)

    def cut(self) -> None:
        """End the connection in the middle of an answer, as a server does whose application raises."""
        self._deliver({"type": "http.response.body", "body": b"", "more_body": False})

    def leave(self) -> None:
        """The client has closed its connection."""
        self._has_left.set()


@dataclass(frozen=True)
class Asked:
    """A request of a client."""

    method: str
    response_id: str = ""
    fields: JsonObject | None = None
    key: str | None = None
    after: int | None = None
    is_streamed: bool = False


class _OnceInMemory(Once):
    """Reads no body: its fields are known."""

    def __init__(self, service: OncePerKey, request: Request, asked: Asked) -> None:
        super().__init__(service, request, Response(), asked.key, (ADA.tenant, ADA.user_id))
        self._fields = asked.fields or {}

    async def __call__(self, create: Any, again: Any, not_compared: Any = ()) -> Any:
        if not self.has_key:
            return await create(None)
        compared = {name: value for name, value in self._fields.items() if name not in not_compared}
        return await self.of_fields(compared, create, again)


class _NoBody:
    """The bytes of a body that takes none."""

    def end_work(self) -> None:
        """Nobody waits for it."""

    def keep(self) -> Callable[[], None]:
        return lambda: None


class BackendLife:
    """One life of a backend."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self.world = around.world
        self.loop = MemberLoop(around.world, name)
        self.failures = RecordingFailures()
        self.defects: list[str] = []
        self._around = around
        self._replica = f"{name}-{around.world.now:.3f}"
        self._serial = 0
        self.house: TurnHouse | None = None
        self.loop.spawn(self._live())

    async def _live(self) -> None:
        world, around = self.world, self._around
        supervisor = Supervisor(self.failures, world.dice.random)
        client = self._valkey_client()
        presence = RedisPresence(client, PRESENCE_SECONDS, 1.5 * PRESENCE_SECONDS)
        presence.start(supervisor)
        house = self.house = self._build(client, supervisor, presence)
        self._once = OncePerKey(self._remote(FakeClaimStore(around.database.state)), house.clock, SECRET)
        async with asyncio.TaskGroup() as group, house.registry:
            await supervisor.until_done("recovery_at_start", house.recovery.at_start)
            repeat = supervisor.repeat_forever
            recovery, waiting = house.recovery, house.services.waiting
            group.create_task(repeat("heartbeat", recovery.renew, recovery.seconds_between_renewals))
            group.create_task(repeat("takeovers", recovery.take, recovery.seconds_between_looks))
            group.create_task(repeat("waiting_turns", waiting.step, 0.0))
            await asyncio.Event().wait()

    def _valkey_client(self) -> ValkeyClient:
        valkey, route = self._around.valkey, self._around.to_valkey
        return ValkeyClient(valkey, Requests(valkey, route, in_order=True), Requests(valkey, route))

    def _remote(self, store: object) -> Any:
        terms = LeaseTerms(seconds=LEASE_SECONDS)
        requests = Requests(self._around.database, self._around.to_database)
        return RemoteStore(store, self._around.database.fences, requests, {"renew": terms.renewal_seconds})

    def _build(self, client: ValkeyClient, supervisor: Supervisor, presence: RedisPresence) -> TurnHouse:
        around = self._around
        turns, conversations, waiting = around.stores

        def tenure() -> Callable[[], bool]:
            return house.ports.stored.lease.tenure()

        events = RedisEventLog(client, supervisor, RETENTION_SECONDS, tenure=tenure)
        chat_shell = LinkedChatShell(self.world, around.targets, self.loop, around.database.state.clock, supervisor)
        parts: dict[str, Any] = {"events": events, "signals": RedisStopSignals(client, supervisor)}
        house = TurnHouse(
            chat_shell=FailoverChatShell(chat_shell),
            state=around.database.state,
            failures=self.failures,
            admission=Admission(presence),
            replica=self._replica,
            checkpoint_seconds=CHECKPOINT_SECONDS,
            finish_pauses_seconds=FINISH_PAUSES_SECONDS,
            turns_class=lambda state: self._remote(turns(state)),
            conversations_class=lambda state: self._remote(conversations(state)),
            waiting_class=lambda state: self._remote(waiting(state)),
            look_seconds=RARE_LOOKS * LOOK_SECONDS,
            lease_seconds=LEASE_SECONDS,
            late_seconds=LATE_SECONDS,
            opening_seconds=OPENING_SECONDS,
            supervisor=supervisor,
            **parts,
        )
        return house

    async def serve(self, asked: Asked, exchange: Exchange) -> None:
        """Answer a request of a client."""
        request = self._request()
        try:
            answer = await self._answer(asked, request)
        except BallastError as error:
            status, _ = status_of(type(error))
            body = orjson.dumps({"error": {"type": type(error).__name__, "message": error.message}})
            answer = Response(body, status)
        except Exception as error:  # noqa: BLE001 -- as the product's last handler, which answers 500
            self.defects.append(f"{asked}: {error!r}")
            answer = Response(b"{}", 500)
        scope: dict[str, Any] = {"type": "http", "method": asked.method, "state": {}}
        exchange.named = {name: request.scope["state"].get(name) for name in ("turn_id", "conversation_id")}
        error = await result_or_error(answer(scope, cast(Any, exchange.receive), cast(Any, exchange.send)))
        if error is not None:
            self.defects.append(f"{asked}: {error!r}")
            exchange.cut()

    def _request(self) -> Request:
        self._serial += 1
        state = {"request_id": f"req_{self._serial}", "body_lease": _NoBody()}
        path = {"path": "/v1/responses", "raw_path": b"/v1/responses", "root_path": "", "scheme": "http"}
        server: dict[str, Any] = {"server": ("ballast.test", 80), "headers": [], "query_string": b""}
        return Request({"type": "http", "method": "POST", "state": state, **path, **server})

    async def _answer(self, asked: Asked, request: Request) -> Response:
        house = self.house
        if house is None:
            raise ChatShellUnavailable("It has yet to start.")
        services = house.services
        endpoint = TurnEndpoint(request, services, ADA)
        if asked.method == "POST":
            wanted = parse_turn_request(orjson.dumps(asked.fields))
            once = _OnceInMemory(self._once, request, asked)
            return await endpoint.answer(wanted, once, _format(), services.on_disconnect.responses)
        if asked.method == "DELETE":
            await services.responses.delete(ADA, asked.response_id)
            return Response(b'{"deleted": true}')
        if asked.method == "CANCEL":
            found = await services.responses.cancel(ADA, asked.response_id)
        else:
            found = await services.responses.find(ADA, asked.response_id)
        if asked.is_streamed:
            after = -1 if asked.after is None else asked.after
            return await endpoint.replay(found, after, _format(after), with_results=False)
        return await one_answer(found.body, _format(), with_results=False)


def _format(newest: int = -1) -> ApiFormat:
    return ResponsesFormat(newest)
