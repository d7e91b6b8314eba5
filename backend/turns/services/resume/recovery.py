"""Renewing the lease of this process on its turns, and taking over the turns of processes that lost theirs."""

import asyncio
from collections.abc import Sequence
from functools import partial

from backend.conversations.domain.leases import TakenTurn
from backend.foundation.services.admission import Admission
from backend.foundation.services.supervision import result_or_error
from backend.turns.domain.turn import JoinedTurn, Turn
from backend.turns.services.resume.recover_turn import RecoverTurn
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import Draining, TurnTaken, Unavailable
from shared.shares import Holder

ONLY_REPLICA_SECONDS = 2.0
"""Pause between looks of an only replica, which has no lease to renew."""

TAKEN_AT_ONCE = 32
"""Turns taken over in one look."""

RETRY_SECONDS = 1.0

TAKEN_OVER = Holder("turns that were taken over")
"""Holds half of the places for turns at most, so that callers get the others."""


class Recovery:
    """Keeps the lease of this process, and takes over turns.

    An only replica takes over all turns that are unfinished at its start, because no other process can run them. Of
    several replicas each takes over turns of those whose lease has expired, and turns that were released. Each takes
    over its own turns, too, of whose beginning or takeover it never heard.
    """

    def __init__(self, ports: TurnPorts, take_over: RecoverTurn, registry: TurnRegistry, admission: Admission) -> None:
        self._ports = ports
        self._take_over = take_over
        self._registry = registry
        self._admission = admission

    async def at_start(self) -> None:
        """Take the lease; an only replica takes over all turns, inside of the registry and before it serves requests.

        Raises:
            Unavailable: the database is away.
        """
        lease = self._ports.stored.lease
        await lease.renew(self._ports.stored.turns)
        if lease.terms is None:
            await self._continue_all(await self._ports.stored.turns.take_all(lease.replica))

    @property
    def seconds_between_renewals(self) -> float:
        """The pause between two renewals of the lease."""
        terms = self._ports.stored.lease.terms
        return ONLY_REPLICA_SECONDS if terms is None else terms.beat_seconds

    @property
    def seconds_between_looks(self) -> float:
        """The pause between two looks for turns to take over; who has a lease looks behind each renewal."""
        return ONLY_REPLICA_SECONDS if self._ports.stored.lease.terms is None else 0.0

    async def renew(self) -> None:
        """Renew the lease. Nothing else is done here, so that nothing else can delay it.

        Raises:
            Unavailable: the database is away, or too slow for a lease. It can be tried again.
        """
        await self._ports.stored.lease.renew(self._ports.stored.turns)

    async def take(self) -> None:
        """Take over some abandoned turns, those of others behind the next renewal, unless this process shuts down.

        Raises:
            Unavailable: the database is away. The next look continues.
        """
        lease = self._ports.stored.lease
        if lease.terms is not None:
            await lease.wait_until_renewed()
        if not self._admission.accepting:
            return
        # What waits here for a place may find one in another replica at once.
        if lease.terms is not None and not self._admission.is_waited_for:
            self._spawn_all(await self._ports.stored.turns.take_abandoned(lease.replica, lease.terms, TAKEN_AT_ONCE))
        await self._take_orphans()

    async def _take_orphans(self) -> None:
        """Take over turns that the store gives to this process and that it does not know.

        Each of its turns is owned before a statement can give it to this process. So one that is in the store and is
        not owned afterwards is the work of a call whose answer was lost.
        """
        turns, replica, registry = self._ports.stored.turns, self._ports.stored.lease.replica, self._registry
        held = sorted(await turns.find_running_ids(replica))
        orphans = [response_id for response_id in held if not registry.owns(response_id)][:TAKEN_AT_ONCE]
        if not orphans:
            return
        taken = await turns.take_again(replica, orphans)
        self._spawn_all(taken)
        for unreadable in set(orphans) - {turn.response.id for turn in taken}:
            registry.own(unreadable)

    def _spawn_all(self, taken: Sequence[TakenTurn]) -> None:
        for turn in taken:
            self._registry.own(turn.response.id)
            self._registry.spawn(self._continue(turn))

    async def _continue_all(self, taken: Sequence[TakenTurn]) -> None:
        async with asyncio.TaskGroup() as group:
            for turn in taken:
                self._registry.own(turn.response.id)
                group.create_task(self._continue(turn))

    async def _continue(self, taken: TakenTurn) -> None:
        """Run an owned turn again or end it.

        After a defect it stays as it is, and so does its conversation; it stays owned, for trying again would not help.
        """
        while True:
            outcome = await result_or_error(self._take_over(taken))
            if not isinstance(outcome, Unavailable):
                break
            await asyncio.sleep(RETRY_SECONDS)
        if isinstance(outcome, JoinedTurn):
            # It takes no place of its own, for which its lanes might have to wait.
            self._registry.start(outcome)
        if isinstance(outcome, Turn):
            self._registry.spawn(self._run_when_free(outcome))
            return
        if isinstance(outcome, BaseException) and not isinstance(outcome, TurnTaken):
            self._ports.observer.turn_broke(taken.response.id, outcome)
            return
        self._registry.disown(taken.response.id)

    async def _run_when_free(self, turn: Turn) -> None:
        """Run an owned turn once it has a place; where this process shuts down before, any other may take it."""
        try:
            place = await self._admission.wait_for_place(TAKEN_OVER)
            self._registry.start(turn).at_end(place.release)
        except Draining:
            self._ports.events.leave(turn.response.id)
            await self._ports.background.attempt(
                "release_turn", partial(self._ports.stored.turns.release, turn.response.hold)
            )
        finally:
            self._registry.disown(turn.response.id)
