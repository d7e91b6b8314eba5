"""The clients of a simulation: they ask for turns, follow them, leave, come back, cancel and delete."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, NamedTuple

import orjson

from shared.models.values import JsonObject
from tests.chaos.clients import seen_event
from tests.chaos.model import Order
from tests.chaos.records import LAST_EVENTS, Reading, Turn
from tests.e2e.turns import text_of
from tests.simulation.backend import Asked, BackendLife, Exchange
from tests.simulation.schedule import Plan
from tests.simulation.world import MemberLoop, World

DONE = "data: [DONE]"
TRIES = 4
PAUSE_SECONDS = 2.0
GIVE_UP_SECONDS = 150.0
"""A client does not wait longer for the end of a turn that it has lost sight of; the judge does."""


SILENT_SECONDS = 20.0
"""A client that hears nothing of its turn for longer is told to the judge."""


class Silence(NamedTuple):
    """How long a connection said nothing of a turn."""

    turn: Turn
    begins: float
    ends: float


class ConnectionLost(Exception):
    """The process at the other end has died, or is not there."""


class Connection:
    """One request, as its client sees it."""

    def __init__(self, world: World, backend: BackendLife, loop: MemberLoop, asked: Asked) -> None:
        self._world, self._backend, self._loop = world, backend, loop
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._exchange = Exchange(self._deliver)
        self._newest = 0.0
        backend.loop.call_at(self._arrives(), self._begin, asked)

    def _begin(self, asked: Asked) -> None:
        self._backend.loop.spawn(self._backend.serve(asked, self._exchange))

    def _arrives(self) -> float:
        self._newest = max(self._newest, self._world.now + self._world.between(0.0002, 0.002))
        return self._newest

    def _deliver(self, message: dict[str, Any]) -> None:
        self._loop.call_at(self._arrives(), self._inbox.put_nowait, message)

    def lose(self) -> None:
        """Tell the client that the other end has died."""
        self._inbox.put_nowait(None)

    async def message(self) -> dict[str, Any]:
        """Return the next message.

        Raises:
            ConnectionLost: the other end has died.
        """
        message = await self._inbox.get()
        if message is None:
            raise ConnectionLost
        return message

    def leave(self) -> None:
        """Close it."""
        self._backend.loop.call_at(self._arrives(), self._exchange.leave)


class Clients:
    """All clients, in a process that nothing is done to; `backends` are those that live now."""

    def __init__(self, world: World, backends: dict[str, BackendLife]) -> None:
        self.world = world
        self.loop = MemberLoop(world, "clients")
        self.turns: list[Turn] = []
        self.server_errors: list[str] = []
        self.bad_ends: list[str] = []
        self.deleted: set[str] = set()
        self.conversations: dict[int, str] = {}
        self.places: dict[str, int] = {}
        self.touched: dict[str, list[float]] = {}
        self.silences: list[Silence] = []
        self.begun: dict[str, float] = {}
        self._backends = backends
        self._open: dict[Connection, tuple[BackendLife, str]] = {}

    def lose(self, backend: BackendLife) -> None:
        """Break the connections to a process that has died."""
        for connection, (other, _) in list(self._open.items()):
            if other is backend:
                self.loop.call_soon(connection.lose)

    def open_calls(self) -> list[str]:
        """Return the calls that have no end yet."""
        return [told for _, told in self._open.values()]

    async def call(self, replica: int, asked: Asked, told: str) -> tuple[int, JsonObject]:
        """Make a call that is answered as a whole; status 0 is a connection that broke."""
        status, body = 0, b""
        async for message in self._messages(replica, asked, told):
            status = message.get("status", status)
            body += message.get("body", b"")
        self._note(status, told, body)
        return status, orjson.loads(body) if status and body else {}

    async def follow(self, replica: int, turn: Turn, asked: Asked, leave_after: float | None = None) -> int:
        """Read a stream to its end, or leave it after so many seconds; return the status, 0 of one that broke."""
        told = f"{asked.method} stream {turn.key}"
        stream = StreamReading(self, turn, Reading(f"backend_{replica + 1}", asked.after))
        end = None if leave_after is None else self.world.now + leave_after
        async for message in self._messages(replica, asked, told):
            stream.take(message)
            if end is not None and self.world.now >= end:
                return stream.status
        if stream.status != 200:
            self._note(stream.status, told, stream.rest.encode())
        elif stream.is_whole and not stream.has_end:
            self.bad_ends.append(f"{told} of {turn.response_id} ended with {stream.reading.events[-1:]}")
        return stream.status

    async def _messages(self, replica: int, asked: Asked, told: str) -> AsyncGenerator[dict[str, Any]]:
        backend = self._backends.get(f"backend_{replica + 1}")
        if backend is None:
            await asyncio.sleep(0.001)
            return
        connection = Connection(self.world, backend, self.loop, asked)
        self._open[connection] = backend, f"{told} at {backend.loop.name} since {self.world.now:.2f}"
        is_whole = False
        try:
            while not is_whole:
                message = await connection.message()
                is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
                yield message
        except ConnectionLost:
            return
        finally:
            del self._open[connection]
            if not is_whole:
                connection.leave()

    def name(self, turn: Turn, response: JsonObject) -> None:
        """Note which response a turn is."""
        turn.response_id = str(response["id"])
        found: Any = response["conversation"]
        turn.conversation = str(found["id"])
        self.conversations.setdefault(self.places[turn.key], turn.conversation)

    def touch(self, turn: Turn) -> None:
        """Note that something of a turn was acknowledged now."""
        self.touched.setdefault(turn.response_id, []).append(self.world.now)

    def _note(self, status: int, told: str, body: bytes) -> None:
        self.world.note(f"answer {status} to {told}")
        if status == 500:
            self.server_errors.append(f"{told}: {status} {body[:200]!r}")


class StreamReading:
    """What has come of a stream of a turn."""

    def __init__(self, clients: Clients, turn: Turn, reading: Reading) -> None:
        self.reading = reading
        self.status = 0
        self.rest = ""
        self.is_whole = False
        self._clients, self._turn = clients, turn
        self._is_done = False
        self._heard_at = clients.world.now

    @property
    def has_end(self) -> bool:
        """Whether `[DONE]` came behind an event that says how it ends, which the client may have had before."""
        events = self.reading.events
        if not events:
            return self._is_done and self.reading.after is not None
        return self._is_done and (events[-1].type in LAST_EVENTS or events[-1].type == "error")

    def take(self, message: dict[str, Any]) -> None:
        """Take the next message."""
        if "status" in message:
            self.status = message["status"]
            if self.status == 200:
                self._turn.readings.append(self.reading)
                if message.get("turn_id"):
                    named: JsonObject = {"id": message["turn_id"], "conversation": {"id": message["conversation_id"]}}
                    self._clients.name(self._turn, named)
            return
        *lines, self.rest = (self.rest + message["body"].decode()).split("\n")
        for line in lines:
            self._is_done = self._is_done or line == DONE
            if line.startswith("data: {"):
                self._note(line, orjson.loads(line[6:]))
        self.is_whole = not message.get("more_body", False)

    def _note(self, line: str, body: Any) -> None:
        clients, turn, now = self._clients, self._turn, self._clients.world.now
        if now - self._heard_at > SILENT_SECONDS:
            clients.silences.append(Silence(turn, self._heard_at, now))
        self._heard_at = now
        if "response" in body:
            clients.name(turn, body["response"])
        if (event := seen_event(line, body)) is not None:
            self.reading.events.append(event)
            clients.touch(turn)
            clients.world.note(f"{self.reading.replica} {turn.key} {event.number} {event.type} {event.digest:08x}")


class Talk:
    """One turn of a client."""

    def __init__(self, clients: Clients, plan: Plan) -> None:
        self._clients, self._plan = clients, plan
        order = Order(plan.key, plan.words, plan.pause_milliseconds, plan.call)
        self._order = order
        expected = "".join(order.deltas())
        calls = int(plan.call != "none")
        self._turn = Turn(plan.key, plan.way, expected=None if plan.way == "steer" else expected, calls=calls)

    async def __call__(self) -> None:
        """Ask, do what is to be done meanwhile, and come back until the end is seen."""
        plan, clients, turn = self._plan, self._clients, self._turn
        clients.turns.append(turn)
        clients.places[plan.key] = plan.conversation
        clients.begun[plan.key] = clients.world.now
        asked = self._asked()
        beside = clients.loop.spawn(self._meanwhile())
        if asked.is_streamed:
            leave_after = plan.after_seconds if plan.meanwhile == "leave" else None
            if await clients.follow(plan.replica, turn, asked, leave_after) == 404:
                clients.conversations.pop(plan.conversation, None)
        else:
            await self._ask_plainly(asked)
        await self._come_back()
        await beside

    def _asked(self) -> Asked:
        plan, clients = self._plan, self._clients
        conversation = clients.conversations.get(plan.conversation)
        fields: JsonObject = {"input": self._order.prompt()}
        if conversation is not None:
            fields["conversation"] = conversation
        if plan.way in ("queue", "steer") or plan.way == "cancel_running":
            fields["if_running"] = plan.way.removesuffix("_running")
        if plan.way == "background":
            fields["background"] = True
        is_streamed = plan.way not in ("plain", "background", "keyed")
        if is_streamed:
            fields["stream"] = True
        key = plan.key if plan.way == "keyed" else None
        return Asked("POST", fields=fields, key=key, is_streamed=is_streamed)

    async def _ask_plainly(self, asked: Asked) -> None:
        plan, clients, turn = self._plan, self._clients, self._turn
        for attempt in range(TRIES if asked.key else 1):
            replica = (plan.replica + attempt) % 2
            status, body = await clients.call(replica, asked, f"POST {plan.way} {plan.key}")
            if status == 200:
                clients.name(turn, body)
                clients.touch(turn)
                turn.answers.append(turn.response_id)
                if plan.way != "background":
                    turn.plain = str(body["status"]), text_of(body)
                return
            if status not in (0, 503):
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _meanwhile(self) -> None:
        plan, clients, turn = self._plan, self._clients, self._turn
        await asyncio.sleep(plan.after_seconds)
        if not turn.response_id:
            return
        other = 1 - plan.replica
        if plan.meanwhile == "second":
            await clients.follow(other, turn, Asked("GET", turn.response_id, is_streamed=True))
        elif plan.meanwhile == "cancel":
            await clients.call(other, Asked("CANCEL", turn.response_id), f"cancel {plan.key}")
        elif plan.meanwhile == "delete":
            clients.deleted.add(turn.response_id)
            await clients.call(other, Asked("DELETE", turn.response_id), f"delete {plan.key}")

    async def _come_back(self) -> None:
        """Read what was missed, at one replica and the other."""
        plan, clients, turn = self._plan, self._clients, self._turn
        give_up, replica = clients.world.now + GIVE_UP_SECONDS, plan.replica
        while turn.response_id and not turn.is_ended and clients.world.now < give_up:
            await asyncio.sleep(PAUSE_SECONDS * clients.world.between(0.2, 1.0))
            replica = 1 - replica
            newest = turn.newest_number()
            again = Asked("GET", turn.response_id, after=newest if newest >= 0 else None, is_streamed=True)
            if await clients.follow(replica, turn, again) == 404:
                return


def start(clients: Clients, plan: Plan) -> None:
    """Let a client ask for a turn at its time."""
    clients.loop.call_at(plan.at_seconds, partial(_start, clients, plan))


def _start(clients: Clients, plan: Plan) -> None:
    clients.loop.spawn(Talk(clients, plan)())
