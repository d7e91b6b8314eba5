"""Letting messages that wait for a running turn enter it, between two of its model calls."""

import asyncio

from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.turns.domain.queued_request import QueuedRequest, read_waiting
from backend.turns.domain.turn import Turn
from backend.turns.services.run.turn_writer import TurnWriter
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import CorruptRecord, InternalError, NoLongerWaiting, Unavailable


class Steering:
    """Finds the messages that wait for one turn, and has them written to its log."""

    def __init__(self, ports: TurnPorts, turn: Turn, writer: TurnWriter) -> None:
        self._waiting = ports.stored.waiting
        self._withheld = ports.stored.withheld
        self._turn = turn
        self._writer = writer

    async def enter(self) -> bool:
        """Write the messages that wait; return whether there were any.

        A message that cannot be read now runs as a turn of its own later. So does one whose author has lost access to
        knowledge that the turn may hold: what the model still says would answer them with what they may not read.
        """
        while self._turn.is_stored and (found := await self._find()):
            messages = [message for _, asked in found for message in asked.messages]
            try:
                await self._writer.enter(messages, [waiting for waiting, _ in found])
            except NoLongerWaiting:
                continue
            return True
        return False

    async def _find(self) -> list[tuple[WaitingTurn, QueuedRequest]]:
        try:
            found = await self._waiting.find_steering(self._turn.response)
        except (Unavailable, CorruptRecord):
            return []
        entering: list[tuple[WaitingTurn, QueuedRequest]] = []
        for waiting in found:
            asked = await self._read_waiting(waiting)
            if asked is not None:
                entering.append((waiting, asked))
            await asyncio.sleep(0)  # others run between two of them
        return entering

    async def _read_waiting(self, waiting: WaitingTurn) -> QueuedRequest | None:
        """Return what is stored of a message that may enter; None where it may not."""
        try:
            asked = read_waiting(waiting)
            is_withheld = await self._withheld.concerns(asked.caller, self._turn.response)
        except (InternalError, Unavailable):
            return None
        return asked if asked.messages and not is_withheld else None
