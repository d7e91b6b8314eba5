"""Letting messages that wait for a running turn enter it, between two of its model calls."""

from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.turns.services.queue_turn import asked_of
from backend.turns.services.turn_ports import Turn, TurnPorts
from backend.turns.services.turn_writer import TurnWriter
from shared.errors import CorruptRecord, InternalError, NoLongerWaiting, Unavailable
from shared.models.messages import UserMessage


class Steering:
    """Finds the messages that wait for one turn, and has them written to its log."""

    def __init__(self, ports: TurnPorts, turn: Turn, writer: TurnWriter) -> None:
        self._waiting = ports.waiting
        self._withheld = ports.withheld
        self._turn = turn
        self._writer = writer

    async def enter(self) -> bool:
        """Write the messages that wait; return whether there were any.

        A message that cannot be read now runs as a turn of its own later. So does one whose author has lost access to
        knowledge that the turn may hold: what the model still says would answer him with what he may not read.
        """
        while self._turn.is_stored and (found := await self._found()):
            messages = [message for waiting in found for message in _messages_of(waiting)]
            try:
                await self._writer.enter(messages, found)
            except NoLongerWaiting:
                continue
            return True
        return False

    async def _found(self) -> list[WaitingTurn]:
        try:
            found = await self._waiting.steering(self._turn.response)
        except (Unavailable, CorruptRecord):
            return []
        return [waiting for waiting in found if _messages_of(waiting) and await self._may_enter(waiting)]

    async def _may_enter(self, waiting: WaitingTurn) -> bool:
        try:
            return not await self._withheld.concerns(asked_of(waiting).caller, self._turn.response)
        except Unavailable:
            return False


def _messages_of(waiting: WaitingTurn) -> tuple[UserMessage, ...]:
    try:
        return asked_of(waiting).messages
    except InternalError:
        return ()
