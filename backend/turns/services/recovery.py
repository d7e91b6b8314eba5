"""Renewing the lease of this process on its turns, and taking over the turns of processes that lost theirs."""

import asyncio
from collections.abc import Sequence

from backend.conversations.domain.leases import TakenTurn
from backend.foundation.services.admission import Admission
from backend.foundation.services.supervision import result_or_error
from backend.turns.services.take_over import TakeOver
from backend.turns.services.turn_ports import Turn, TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import TurnTaken, Unavailable

ONLY_REPLICA_SECONDS = 2.0
"""Pause between looks of an only replica, which has no lease to renew."""

TAKEN_AT_ONCE = 32
"""Turns taken over between two renewals of the lease."""

RETRY_SECONDS = 1.0


class Recovery:
    """Keeps the lease of this process, and takes over turns.

    An only replica takes over all turns that are unfinished at its start, because no other process can run them. Of
    several replicas each takes over turns of those whose lease has expired, and turns that were released.
    """

    def __init__(self, ports: TurnPorts, take_over: TakeOver, registry: TurnRegistry, admission: Admission) -> None:
        self._ports = ports
        self._take_over = take_over
        self._registry = registry
        self._admission = admission

    async def at_start(self) -> None:
        """Take the lease; an only replica takes over all turns, inside of the registry and before it serves requests.

        Raises:
            Unavailable: the database is away.
        """
        lease = self._ports.lease
        await lease.renew(self._ports.turns)
        if lease.terms is None:
            await self._continue_all(await self._ports.turns.take_all(lease.replica))

    @property
    def seconds_between(self) -> float:
        """The pause between two beats."""
        terms = self._ports.lease.terms
        return ONLY_REPLICA_SECONDS if terms is None else terms.beat_seconds

    async def beat(self) -> None:
        """Renew the lease, then take over some abandoned turns of others, unless this process shuts down.

        Raises:
            Unavailable: the database is away. The next beat continues.
        """
        lease, turns = self._ports.lease, self._ports.turns
        await lease.renew(turns)
        if lease.terms is not None and self._admission.accepting:
            for taken in await turns.take_abandoned(lease.replica, lease.terms, TAKEN_AT_ONCE):
                self._registry.spawn(self._continue(taken))

    async def _continue_all(self, taken: Sequence[TakenTurn]) -> None:
        async with asyncio.TaskGroup() as group:
            for turn in taken:
                group.create_task(self._continue(turn))

    async def _continue(self, taken: TakenTurn) -> None:
        """Run a turn again or end it; after a defect it stays as it is, and so does its conversation."""
        while True:
            outcome = await result_or_error(self._take_over(taken))
            if not isinstance(outcome, Unavailable):
                break
            await asyncio.sleep(RETRY_SECONDS)
        if isinstance(outcome, Turn):
            self._registry.start(outcome)
        elif isinstance(outcome, BaseException) and not isinstance(outcome, TurnTaken):
            self._ports.observer.turn_broke(taken.response.id, outcome)
