"""A double of PostgreSQL: the stores that the contract tests hold to the real ones, behind a network that fails.

Each call is a transaction of its own, applied as a whole where it arrives; its answer may be lost behind it.
"""

from collections.abc import Callable, Mapping
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
        self.lost: list[tuple[float, float]] = []
        """The times between which what was acknowledged is lost."""

    def snapshot(self) -> dict[str, Any]:
        """Return what a standby has now; the rows themselves are never changed in place."""
        names = [field.name for field in fields(self.state) if field.name not in _LOCAL]
        return {name: _copied(getattr(self.state, name)) for name in names}

    def fail_over(self, standby: Mapping[str, Any], taken_at: float) -> None:
        """Go on with what a standby had then."""
        self.lost.append((taken_at, self.world.now))
        for name, rows in standby.items():
            setattr(self.state, name, _copied(rows))


def _copied(rows: Any) -> Any:
    if isinstance(rows, dict):
        found = cast("dict[object, Any]", rows)
        return {key: row.copy() if isinstance(row, dict | list | set) else row for key, row in found.items()}
    return rows.copy()


class RemoteStore:
    """A store of a process: each of its methods asks the database."""

    def __init__(self, store: object, requests: Requests, timeouts: Mapping[str, float]) -> None:
        self._store = store
        self._requests = requests
        self._timeouts = {"find": FIND_TIMEOUT_SECONDS, **timeouts}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        timeout = self._timeouts.get(name, DEFAULT_TIMEOUT_SECONDS)

        async def call(*args: Any, **options: Any) -> Any:
            try:
                return await self._requests.ask(partial(_serve, partial(method, *args, **options)), timeout)
            except Broken as error:
                raise Unavailable("The database is not available.", retry_after_seconds=1) from error

        setattr(self, name, call)
        return call


def _serve(method: Callable[[], Any], reply: Reply) -> None:
    try:
        reply(_result_of(method()))
    except BallastError as refusal:
        reply(refusal)


def _result_of(work: Any) -> Any:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("A store has waited.")
