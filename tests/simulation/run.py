"""One simulation: what a seed does to two backends, two chat_shells and their stores, and what is left behind."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import NamedTuple

from shared import ids
from shared.models.values import JsonObject
from tests.chaos.model import Order
from tests.chaos.records import Violation
from tests.chaos.schedule import MODEL_FAULTS, FaultKind
from tests.simulation import clients as clients_of
from tests.simulation.backend import STORES, Asked, BackendLife, Stores, Surroundings
from tests.simulation.clients import Clients
from tests.simulation.database import Database
from tests.simulation.judge import Left, judge
from tests.simulation.link import KEEPALIVE_SECONDS, Target
from tests.simulation.network import Route
from tests.simulation.replacing import replaced
from tests.simulation.schedule import (
    BACKENDS,
    EVICT,
    FAIL_OVER,
    FLUSH,
    LOST_SECONDS,
    ROUTES,
    SHELLS,
    Happening,
    draw_faults,
    draw_turns,
)
from tests.simulation.shell import MODELS, ModelServer, ShellLife
from tests.simulation.valkey import Valkey
from tests.simulation.world import MemberLoop, World

SECONDS = 600.0
REVIVAL_SECONDS = 20.0
"""How long before the end each conversation has to take a further turn."""


class Outcome(NamedTuple):
    """What a seed has left: `history` is the same for the same seed."""

    seed: int
    history: tuple[str, ...]
    violations: tuple[Violation, ...]
    turns: int
    statuses: tuple[str, ...]


class Simulation:
    """All processes and doubles of one seed."""

    def __init__(self, seed: int, seconds: float = SECONDS, stores: Stores = STORES) -> None:
        self.world = World(seed)
        self.seconds = seconds
        self.database, self.valkey = Database(self.world), Valkey(self.world)
        self.model = ModelServer(self.world)
        self.routes = {name: Route(self.world, name) for name in ROUTES}
        self.shells: dict[str, ShellLife] = {}
        self.backends: dict[str, BackendLife] = {}
        self.lives: list[BackendLife] = []
        self.clients = Clients(self.world, self.backends)
        self.stuck: list[str] = []
        self._stores = stores
        self._targets = {name: [Target(self.routes[f"{name} {shell}"]) for shell in SHELLS] for name in BACKENDS}
        dice = Random(seed)
        self.plans = draw_turns(dice, seconds)
        self.faults = draw_faults(dice, self.plans, seconds)

    def run(self) -> Outcome:
        """Run it to its end, and judge what is left."""
        for name in SHELLS:
            self._start_shell(name)
        for name in BACKENDS:
            self._start_backend(name)
        for plan in self.plans:
            clients_of.start(self.clients, plan)
        for fault in self.faults:
            self._plan_fault(fault)
        self.clients.loop.call_at(self.seconds - REVIVAL_SECONDS, self._revive)
        try:
            self.world.run_until(self.seconds)
            found = judge(self._left())
        finally:
            self.world.close()
        statuses = tuple(one.status.value for one in self.database.state.responses.values())
        return Outcome(0, tuple(self.world.history), found, len(self.clients.turns), statuses)

    def _left(self) -> Left:
        loops = [*self.world.loops, *self.world.killed]
        defects = [told for loop in loops for told in loop.defects]
        for life in self.lives:
            defects += life.defects
            if life.house is not None:
                defects += [f"{life.loop.name}: {error!r}" for error in life.house.observer.broken]
        drift = [str(told) for life in self.lives if life.house is not None for told in life.house.observer.drifts]
        return Left(
            self.clients, self.database, self.model, self.faults, tuple(self.stuck), tuple(defects), tuple(drift)
        )

    def _start_shell(self, name: str) -> None:
        self.shells[name] = shell = ShellLife(self.world, name, self.model, self.database.state.clock)
        for targets in self._targets.values():
            target = targets[SHELLS.index(name)]
            target.loop, target.serve, target.models = shell.loop, shell.serve, MODELS

    def _start_backend(self, name: str) -> None:
        to_database, to_valkey = self.routes[f"{name} postgres"], self.routes[f"{name} valkey"]
        around = Surroundings(
            *(self.world, self.database, self.valkey, to_database, to_valkey, self._targets[name]), stores=self._stores
        )
        self.backends[name] = life = BackendLife(around, name)
        self.lives.append(life)

    def _revive(self) -> None:
        for place, conversation in sorted(self.clients.conversations.items()):
            self.clients.loop.spawn(self._take_turn(place, conversation))

    async def _take_turn(self, place: int, conversation: str) -> None:
        fields: JsonObject = {"conversation": conversation, "input": Order(f"revival{place}", 3, 10).prompt()}
        status, body = await self.clients.call(place % 2, Asked("POST", fields=fields), f"revival of {conversation}")
        if status not in (200, 404):
            self.stuck.append(f"{conversation}: {status} {body}")

    def _plan_fault(self, fault: Happening) -> None:
        loop = self.clients.loop
        begin, end = self._ways_of(fault)
        if fault.kind == FAIL_OVER:
            loop.call_at(fault.at_seconds - LOST_SECONDS, self._take_standby)
        loop.call_at(fault.at_seconds, self._note, "begins", fault, begin)
        loop.call_at(fault.at_seconds + fault.lasts_seconds, self._note, "ends", fault, end)

    def _note(self, what: str, fault: Happening, change: Callable[[], object]) -> None:
        self.world.note(f"fault {what}: {fault.kind} {fault.target}")
        change()

    def _ways_of(self, fault: Happening) -> tuple[Callable[[], object], Callable[[], object]]:
        if fault.kind in MODEL_FAULTS:
            return partial(self._spoil_model, FaultKind(fault.kind)), partial(self._spoil_model, None)
        if fault.target in self.routes:
            return partial(_break_route, self.routes[fault.target], fault), _nothing
        if fault.kind == FaultKind.FREEZE:
            return partial(self._freeze, fault), partial(self._thaw, fault.target)
        if fault.target in BACKENDS:
            return partial(self._kill_backend, fault.target), partial(self._start_backend, fault.target)
        if fault.target in SHELLS:
            return partial(self._kill_shell, fault.target), partial(self._start_shell, fault.target)
        if fault.target == "postgres":
            is_fail_over = fault.kind == FAIL_OVER
            return (self._fail_over if is_fail_over else self.database.stop), self.database.start
        return self._ways_of_valkey(fault.kind)

    def _ways_of_valkey(self, kind: str) -> tuple[Callable[[], object], Callable[[], object]]:
        if kind == FLUSH:
            return self.valkey.flush, _nothing
        if kind == EVICT:
            return self.valkey.evict, _nothing
        if kind == FaultKind.FULL_MEMORY:
            return partial(setattr, self.valkey, "is_full", True), partial(setattr, self.valkey, "is_full", False)
        return self._kill_valkey, self.valkey.start

    def _spoil_model(self, kind: FaultKind | None) -> None:
        self.model.fault = kind

    def _loop_of(self, target: str) -> MemberLoop:
        servers = {"postgres": self.database.loop, "valkey": self.valkey.loop}
        if target in servers:
            return servers[target]
        return self.backends[target].loop if target in self.backends else self.shells[target].loop

    def _freeze(self, fault: Happening) -> None:
        self._loop_of(fault.target).freeze()
        if fault.target in SHELLS and fault.lasts_seconds > KEEPALIVE_SECONDS:
            for name in BACKENDS:
                self.clients.loop.call_later(KEEPALIVE_SECONDS, self.routes[f"{name} {fault.target}"].cut)

    def _thaw(self, target: str) -> None:
        self._loop_of(target).thaw()

    def _kill_backend(self, name: str) -> None:
        life = self.backends.pop(name)
        life.loop.kill()
        self.clients.lose(life)
        for shell in SHELLS:
            self.routes[f"{name} {shell}"].cut()

    def _kill_shell(self, name: str) -> None:
        self.shells[name].loop.kill()
        for backend, targets in self._targets.items():
            targets[SHELLS.index(name)].loop = None
            self.routes[f"{backend} {name}"].cut()

    def _kill_valkey(self) -> None:
        self.valkey.stop()
        self.valkey.flush()

    def _take_standby(self) -> None:
        self._standby = self.database.snapshot(), self.world.now

    def _fail_over(self) -> None:
        self.database.stop()
        self.database.fail_over(*self._standby)


def _nothing() -> None:
    """It ends by itself."""


def _break_route(route: Route, fault: Happening) -> None:
    ways: dict[str, Callable[[float], object]] = {
        FaultKind.REFUSE: route.refuse,
        FaultKind.DELAY: route.delay,
        FaultKind.SILENCE: route.silence,
    }
    if fault.kind == FaultKind.CUT:
        route.cut()
    else:
        ways[fault.kind](fault.lasts_seconds)


@contextmanager
def drawn_ids(seed: int) -> Generator[None]:
    """Draw the product's ids from a seed."""
    dice = Random(seed)

    def token_hex(size: int) -> str:
        return f"{dice.getrandbits(8 * size):0{2 * size}x}"

    with replaced(ids, "secrets", SimpleNamespace(token_hex=token_hex)):
        yield


def simulate(seed: int, seconds: float = SECONDS) -> Outcome:
    """Run a seed."""
    with drawn_ids(seed):
        return Simulation(seed, seconds, STORES).run()._replace(seed=seed)
