"""A double of PostgreSQL: the stores that the contract tests hold to the real ones, behind a network that fails.

Each call is a transaction of its own, applied as a whole where it arrives; its answer may be lost behind it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, cast

from backend.foundation.sql.database import DEFAULT_TIMEOUT_SECONDS, FIND_TIMEOUT_SECONDS
from shared.errors import BallastError, Unavailable
from tests.fakes.store_state import StoreState
from tests.simulation.network import Broken, Reply, Requests, Server
from tests.simulation.world import World, WorldClock

_LOCAL = frozenset({"clock", "api_keys"})


class Database(Server):
    """The rows, and the server that serves them."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "postgres")
        self.state = StoreState(clock=WorldClock(world))
        self.fences = Fences()
        self.lost: list[tuple[float, float]] = []
        """The times between which what was acknowledged is lost."""

    def snapshot(self) -> dict[str, Any]:
        """Return what a standby has now; the rows themselves are never changed in place."""
        names = [field.name for field in fields(self.state) if field.name not in _LOCAL]
        return {name: _copied(getattr(self.state, name)) for name in names}

    def fail_over(self, standby: Mapping[str, Any], taken_at: float) -> None:
        """Go on with what a standby had then."""
        self.lost.append((taken_at, self.world.now))
        self.fences.newest.clear()
        for name, rows in standby.items():
            setattr(self.state, name, _copied(rows))


def _copied(rows: Any) -> Any:
    if not isinstance(rows, dict):
        return rows.copy()
    found = cast("dict[object, Any]", rows)
    return {key: row.copy() if type(row) in (dict, list, set) else row for key, row in found.items()}


class Fences:
    """The fencing numbers under which turns were taken and written: nobody writes a turn that a later holder has."""

    def __init__(self) -> None:
        self.newest: dict[str, int] = {}
        self.broken: list[str] = []

    def note(self, method: str, arguments: Sequence[Any], result: Any) -> None:
        """Note what a method of `TurnStore` has done."""
        if method.startswith("take_"):
            for taken in result:
                self._take(taken.response.id, taken.response.fence)
        elif method == "append":
            self._write(method, arguments[0].response_id, arguments[0].fence)
        elif method == "finish" and result:
            self._write(method, arguments[0].response.id, arguments[0].response.fence)
        elif method == "checkpoint_many":
            for hold in (each.hold for each in arguments[0] if each.hold.response_id not in result):
                self._write(method, hold.response_id, hold.fence)

    def _take(self, response_id: str, fence: int) -> None:
        if fence <= self.newest.get(response_id, 0):
            self.broken.append(f"{response_id} was taken over under {fence}, which is not above all before")
        self.newest[response_id] = fence

    def _write(self, method: str, response_id: str, fence: int) -> None:
        if fence < self.newest.get(response_id, fence):
            self.broken.append(f"{method} of {response_id} under {fence}, held under {self.newest[response_id]}")


class RemoteStore:
    """A store of a process: each of its methods asks the database."""

    def __init__(self, store: object, fences: Fences, requests: Requests, timeouts: Mapping[str, float]) -> None:
        self._store = store
        self._fences = fences
        self._requests = requests
        self._timeouts = {"find": FIND_TIMEOUT_SECONDS, **timeouts}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        timeout = self._timeouts.get(name, DEFAULT_TIMEOUT_SECONDS)

        async def call(*args: Any, **options: Any) -> Any:
            try:
                work = partial(method, *args, **options)
                return await self._requests.ask(partial(_serve, work, partial(self._fences.note, name, args)), timeout)
            except Broken as error:
                raise Unavailable("The database is not available.", retry_after_seconds=1) from error

        setattr(self, name, call)
        return call


def _serve(method: Callable[[], Any], note: Callable[[Any], None], reply: Reply) -> None:
    try:
        result = _result_of(method())
    except BallastError as refusal:
        reply(refusal)
        return
    note(result)
    reply(result)


def _result_of(work: Any) -> Any:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("A store has waited.")
