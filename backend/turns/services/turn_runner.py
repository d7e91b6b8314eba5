"""Running turns of both kinds over the ports of this process."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from backend.conversations.domain.responses import StoredResponse
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS
from backend.turns.domain.turn import JoinedTurn, Turn
from backend.turns.services.lanes.join_lanes import join_lanes
from backend.turns.services.run.checkpoints import CHECKPOINT_SECONDS, CheckpointWriter
from backend.turns.services.run.run_turn import run_turn
from backend.turns.services.running_turn import TurnSignals
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import Unavailable

ELSEWHERE_SECONDS = 0.5
"""Pause between looks at a turn that another process runs."""


class RunTurns:
    """Implements `TurnRunner`; checkpoints of all turns are stored together."""

    def __init__(
        self,
        ports: TurnPorts,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS,
    ) -> None:
        self._ports = ports
        self._checkpoints = CheckpointWriter(ports.stored.turns, ports.background, checkpoint_seconds)
        self._finish_pauses_seconds = finish_pauses_seconds

    def start(self) -> None:
        """Begin to store checkpoints."""
        self._checkpoints.start()

    async def stop(self) -> None:
        """End it."""
        await self._checkpoints.stop()

    async def run(self, turn: Turn | JoinedTurn, signals: TurnSignals) -> StoredResponse | None:
        """Run a turn to its end, or join its lanes."""
        checkpoints, pauses_seconds = self._checkpoints, self._finish_pauses_seconds
        if isinstance(turn, JoinedTurn):
            return await join_lanes(self._ports, turn, signals, checkpoints, pauses_seconds)
        return await run_turn(self._ports, turn, signals, checkpoints, pauses_seconds)

    async def wait_until_ended_elsewhere(self, response_id: str) -> StoredResponse | None:
        """Look again and again until the turn has ended."""
        while True:
            with suppress(Unavailable):
                stored = await self._ports.stored.turns.find(response_id)
                if stored is None or stored.status.is_terminal:
                    return stored
            await asyncio.sleep(ELSEWHERE_SECONDS)

    async def drop_events(self, response_id: str) -> None:
        """Drop the events of a turn."""
        await self._ports.background.attempt("drop_events", partial(self._ports.events.drop, response_id))

    def report_defect(self, response_id: str, error: BaseException) -> None:
        """Report a defect."""
        self._ports.observer.turn_broke(response_id, error)
