"""Doing to a cluster what the schedule says, and undoing it."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.chaos.cluster import START_SECONDS, Cluster
from tests.chaos.schedule import MODEL_FAULTS, Fault, FaultKind

DELAY_SECONDS = 0.3
LOST_SECONDS = 1.0
AFTERMATH_SECONDS = 10.0
"""So long after its disk was full, PostgreSQL may still end because of it."""

Undo = Callable[[], Awaitable[None]]


class Faults:
    """Plays schedules; `played` counts what was done."""

    def __init__(self, cluster: Cluster) -> None:
        self.played: Counter[str] = Counter()
        self._cluster = cluster
        self.lost: list[tuple[float, float]] = []
        """The times between which what was acknowledged is lost."""

    async def play(self, schedule: Sequence[Fault]) -> None:
        """Return when the last fault is undone; undo all when cancelled."""
        begins_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for fault in schedule:
                group.create_task(self._one(fault, begins_at))

    async def _one(self, fault: Fault, begins_at: float) -> None:
        await asyncio.sleep(begins_at + fault.at_seconds - asyncio.get_running_loop().time())
        self.played[f"{fault.kind} {fault.target}"] += 1
        undo = await self._done(fault)
        try:
            await asyncio.sleep(fault.lasts_seconds)
        finally:
            await undo()

    async def _done(self, fault: Fault) -> Undo:
        if fault.kind in MODEL_FAULTS:
            return self._spoil_model(fault.kind)
        if fault.target in self._cluster.links:
            return self._break_link(fault)
        if fault.kind is FaultKind.FULL_MEMORY:
            return await self._fill_memory()
        if fault.kind is FaultKind.FAIL_OVER:
            return await self._fail_over()
        if fault.kind in (FaultKind.FULL_DISK, FaultKind.FROZEN_DISK):
            return await self._spoil_disk(fault)
        return self._stop_member(fault)

    def _spoil_model(self, kind: FaultKind) -> Undo:
        self._cluster.model.fault = kind

        async def undo() -> None:
            self._cluster.model.fault = None

        return undo

    def _break_link(self, fault: Fault) -> Undo:
        link = self._cluster.links[fault.target]
        if fault.kind is FaultKind.REFUSE:
            link.refuse()
        elif fault.kind is FaultKind.CUT:
            link.cut()
        elif fault.kind is FaultKind.SILENCE:
            link.silence()
        else:
            link.delay_seconds = DELAY_SECONDS
        return link.heal

    def _stop_member(self, fault: Fault) -> Undo:
        member = self._cluster.members[fault.target]
        is_kill = fault.kind is FaultKind.KILL
        (member.kill if is_kill else member.freeze)()

        async def undo() -> None:
            (member.start if is_kill else member.thaw)()

        return undo

    async def _fail_over(self) -> Undo:
        """Kill PostgreSQL with what it has acknowledged and not written for a second, as a standby would lack it.

        What is lost begins where the first commit may stay unwritten, and a client may hear of one until it is back.
        """
        postgres, begins = self._cluster.members["postgres"], time.monotonic()
        await asyncio.to_thread(self._cluster.postgres.acknowledge_unwritten, is_on=True)
        await asyncio.sleep(LOST_SECONDS)
        postgres.freeze()
        postgres.kill_family()

        async def undo() -> None:
            self.lost.append((begins, time.monotonic()))
            postgres.start()
            await asyncio.to_thread(
                self._cluster.postgres.child.wait_until, self._cluster.postgres.is_ready, START_SECONDS
            )
            await asyncio.to_thread(self._cluster.postgres.acknowledge_unwritten, is_on=False)

        return undo

    async def _fill_memory(self) -> Undo:
        valkey = self._cluster.valkey
        await asyncio.to_thread(valkey.answer, "CONFIG SET maxmemory 1mb")

        async def undo() -> None:
            await asyncio.to_thread(valkey.answer, "CONFIG SET maxmemory 0")

        return undo

    async def _spoil_disk(self, fault: Fault) -> Undo:
        disk, postgres = self._cluster.disk, self._cluster.members["postgres"]
        assert disk is not None
        is_full = fault.kind is FaultKind.FULL_DISK
        postgres.excuse = f"its disk was {fault.kind}"
        if is_full:
            await asyncio.to_thread(disk.fill)
        else:
            disk.freeze(fault.lasts_seconds)

        async def undo() -> None:
            if is_full:
                await asyncio.to_thread(disk.empty)
            asyncio.get_running_loop().call_later(AFTERMATH_SECONDS, setattr, postgres, "excuse", "")

        return undo
