"""The executions of a running turn: chat_shell runs it in one or in several, and each is asked for with a request."""

import asyncio
from collections.abc import Sequence

from backend.conversations.domain.conversation_log import EpochReason
from backend.prompt.domain.execution_request import request_of
from backend.prompt.domain.truncation import Truncation
from backend.turns.domain.turn import Turn
from backend.turns.services.run.compact_history import CompactHistory, due_at_start, is_long_when_taken_over
from backend.turns.services.run.execution_reader import ExecutionEvents, ExecutionReader
from backend.turns.services.run.steering import Steering
from backend.turns.services.run.turn_writer import TurnWriter
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import ChatShellSilent, ContextTooLong, ModelContextOverflow
from shared.models.events import ExecutionEvent, MessagesAdded
from shared.models.execution import ExecutionRequest
from shared.models.messages import ToolMessage

MOST_MOVES = 2
"""How often a turn may lose the replica that runs it: a request that freezes one must not freeze all."""


class Executions:
    """Runs all executions of one turn; who sets `asked` ends the one that runs at its next boundary.

    A boundary lies between two model calls, where all calls of tools have their results in the log. There, and behind
    the last model call, messages enter that wait for the turn; it then goes on with one more call at least.
    """

    def __init__(
        self, ports: TurnPorts, turn: Turn, reader: ExecutionReader, writer: TurnWriter, asked: asyncio.Event
    ) -> None:
        self._turn = turn
        self._reader = reader
        self._writer = writer
        self._asked = asked
        self._steering = Steering(ports, turn, writer)
        self._compact = CompactHistory(ports, turn, reader, writer)
        self._due: Truncation | None = None
        self._is_long = False
        self._execution: ExecutionEvents | None = None
        self._moves_left = MOST_MOVES
        self._is_heard = False

    def start(self) -> None:
        """Send the turn's first request, unless the conversation has to be compacted before."""
        self._due = due_at_start(self._turn)
        self._is_long = is_long_when_taken_over(self._turn)
        if self._due is None and not self._is_long:
            self._execution = self._reader.start(self._turn.request)

    async def run(self) -> None:
        """Write all that the turn brings forth, to its end."""
        turn, reader, writer = self._turn, self._reader, self._writer
        request = turn.request
        if self._due is not None:
            await self._compact.at_start(self._due)
            request = self._go_on(request, turn.declared_reset)
        elif self._is_long:
            request = await self._shorten(request)
        while self._execution is not None:
            is_at_boundary = await self._write_execution(self._execution)
            if self._may_move():
                request = self._go_on(request, None)
                continue
            if reader.is_stopped or writer.is_cut or not await self._goes_on(is_at_boundary=is_at_boundary):
                return
            request = await self._shorten(request)

    def _may_move(self) -> bool:
        """Say whether another replica makes the model call again whose replica has fallen silent.

        Clients have got nothing of it, so that what it may still say is heard by nobody. One that says nothing at all
        counts for all: the turn would wait for several, one after the other.
        """
        is_lost = isinstance(self._reader.error, ChatShellSilent) and not self._writer.has_shown_of_call
        self._moves_left -= is_lost * (1 if self._is_heard else MOST_MOVES)
        return is_lost and self._moves_left >= 0 and not self._reader.is_stopped

    async def _goes_on(self, *, is_at_boundary: bool) -> bool:
        """Let messages that wait enter the turn; return whether a further execution follows.

        None enters behind a call that the provider found too long: that turn may fail yet.
        """
        if self._writer.is_overflowed:
            return True
        is_between_calls = is_at_boundary or self._writer.is_handed_back
        may_enter = is_between_calls or (self._writer.may_go_on and self._may_be_waited_for)
        self._asked.clear()  # who asks from here on is not looked for yet
        has_entered = may_enter and await self._steering.enter()
        return is_between_calls or has_entered

    @property
    def _may_be_waited_for(self) -> bool:
        """Whether a message may wait: it was announced, or may have been where that was heard no more."""
        return self._asked.is_set() or self._writer.entered_count > 0 or self._turn.begun is not None

    async def _shorten(self, request: ExecutionRequest) -> ExecutionRequest:
        """Go on between two model calls, with less of the conversation where that is needed; or end the turn."""
        try:
            if self._writer.is_overflowed:
                await self._compact.after_overflow(request)
            else:
                await self._compact.between_calls(request, self._writer.handed_back_tokens)
        except (ContextTooLong, ModelContextOverflow) as error:
            self._execution = None
            self._writer.fail(error)
            return request
        return self._go_on(request, None)

    def _go_on(self, request: ExecutionRequest, reset: str | None) -> ExecutionRequest:
        """Send a request that goes on from the log; `reset` is why it need not extend what was sent before."""
        turn, log = self._turn, self._writer.log
        later = request_of(turn.record, log)
        is_new = later.epoch != request.epoch
        self._writer.go_on(later, EpochReason.COMPACTION if is_new else reset)
        self._execution = self._reader.start(later)
        return later

    async def _write_execution(self, execution: ExecutionEvents) -> bool:
        """Write the events of one execution; return whether it was ended here, at a boundary."""
        writer, is_ended = self._writer, False
        self._is_heard = False
        while batch := await execution.take():
            self._is_heard = True
            if is_ended:
                continue  # the model call behind the boundary is made again
            until = _boundary(batch) if self._asked.is_set() else None
            await writer.write(batch[:until])
            is_ended = until is not None
            if is_ended or writer.is_cut:
                execution.end()
        if not is_ended:
            await writer.write_rest()
        return is_ended


def _boundary(batch: Sequence[ExecutionEvent]) -> int | None:
    """Return how many events lead to the first boundary in a batch; None where it holds none."""
    ends = (place for place, event in enumerate(batch, 1) if isinstance(event, MessagesAdded) and _is_whole(event))
    return next(ends, None)


def _is_whole(added: MessagesAdded) -> bool:
    """Say whether a further model call follows: all calls have results, and none waits for the client."""
    calls = [call.call_id for said in added.messages if said.role == "assistant" for call in said.tool_calls]
    answered = {message.call_id for message in added.messages if isinstance(message, ToolMessage)}
    return bool(answered) and answered.issuperset(calls)
