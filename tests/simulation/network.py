"""Servers that are asked over connections which are cut, silent, late or refused, as a seed decides."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.simulation.world import MemberLoop, World

LEAST_SECONDS, MOST_SECONDS = 0.0002, 0.002
"""How long a message is on its way."""

LATE_SECONDS = 0.3
CHANCE_OF_ARRIVAL = 0.5
"""Of a request that is on its way as its connection breaks, or as its sender gives it up."""

Reply = Callable[[object], None]
Serve = Callable[[Reply], None]


class Broken(Exception):
    """A connection broke, or could not be made."""


class Route:
    """The network between two processes; faults are told by the time at which they end."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._silent_until = 0.0
        self._late_until = 0.0
        self._refused_until = 0.0
        self._at_cut: dict[object, Callable[[], None]] = {}

    def silence(self, seconds: float) -> None:
        """Let nothing through; what was sent arrives later."""
        self._silent_until = self._world.now + seconds

    def delay(self, seconds: float) -> None:
        """Let everything be late."""
        self._late_until = self._world.now + seconds

    def refuse(self, seconds: float) -> None:
        """Break all connections, and let none be made."""
        self._refused_until = self._world.now + seconds
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for break_off in list(self._at_cut.values()):
            break_off()

    @property
    def is_refused(self) -> bool:
        """Whether no connection can be made."""
        return self._world.now < self._refused_until

    def arrives_at(self) -> float:
        """Return when a message arrives that is sent now."""
        now = self._world.now
        late = LATE_SECONDS if now < self._late_until else 0.0
        return max(now, self._silent_until) + late + self._world.between(LEAST_SECONDS, MOST_SECONDS)

    def at_cut(self, key: object, call: Callable[[], None]) -> None:
        """Have a function called when connections break."""
        self._at_cut[key] = call

    def forget(self, key: object) -> None:
        """Take an `at_cut` back."""
        self._at_cut.pop(key, None)


class Server:
    """A process that answers requests; while it is away, connections to it are refused."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.loop = MemberLoop(world, name, is_server=True)
        self.is_away = False
        self.routes: list[Route] = []

    def stop(self) -> None:
        """Break all connections and be away."""
        self.is_away = True
        for route in self.routes:
            route.cut()

    def start(self) -> None:
        """Be there again."""
        self.is_away = False


class Requests:
    """The connections of one process to a server; `in_order` is one connection, else each request has its own."""

    def __init__(self, server: Server, route: Route, *, in_order: bool = False) -> None:
        self.world = server.world
        self._server = server
        self._route = route
        self._in_order = in_order
        self._newest = 0.0
        server.routes.append(route)

    async def ask(self, serve: Serve, timeout_seconds: float) -> Any:
        """Return what the server replies.

        Raises:
            Broken: no connection, a broken one, or no answer in time. The request may have been served.
            Exception: what the server replies where that is an error.
        """
        loop = asyncio.get_running_loop()
        if self._server.is_away or self._route.is_refused:
            await asyncio.sleep(self.world.between(LEAST_SECONDS, MOST_SECONDS))
            raise Broken(f"{self._server.name} refuses connections.")
        answer: asyncio.Future[Any] = loop.create_future()
        timer = loop.call_later(timeout_seconds, _settle, answer, Broken(f"{self._server.name} is silent."))
        self._route.at_cut(answer, partial(self._break, loop, answer))
        at = self._route.arrives_at()
        if self._in_order:
            at = self._newest = max(self._newest, at)
        self._server.loop.call_at(at, self._arrive, loop, answer, serve)
        try:
            return await answer
        finally:
            timer.cancel()
            self._route.forget(answer)

    def _break(self, loop: Any, answer: asyncio.Future[Any]) -> None:
        self._route.forget(answer)
        loop.call_soon(_settle, answer, Broken(f"The connection to {self._server.name} broke."))

    def _arrive(self, loop: Any, answer: asyncio.Future[Any], serve: Serve) -> None:
        is_lost = self._server.is_away or answer.done()
        if is_lost and (self._server.is_away or self.world.dice.random() > CHANCE_OF_ARRIVAL):
            return

        def reply(result: object) -> None:
            loop.call_at(self._route.arrives_at(), _settle, answer, result)

        serve(reply)


def _settle(answer: asyncio.Future[Any], result: object) -> None:
    if answer.done():
        return
    if isinstance(result, BaseException):
        answer.set_exception(result)
    else:
        answer.set_result(result)
