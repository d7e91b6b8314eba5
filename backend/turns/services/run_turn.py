"""One turn from its first event to its stored end, whoever listens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.turns.domain.response_object import Ending, failed
from backend.turns.services.turn_ports import Turn, TurnPorts
from backend.turns.services.turn_writer import FINISH_PAUSES_SECONDS, TurnWriter
from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded, InternalError, Unavailable
from shared.models.error_reports import report_of
from shared.models.events import ExecutionEvent, Usage
from shared.models.execution import ExecutionRequest, remaining_seconds

MAX_WAITING_EVENTS = 256
"""Beyond it the reader waits, and with it, through flow control, chat_shell and the provider."""

CHECKPOINT_SECONDS = 0.5
CHECKPOINT_CHARACTERS_A_SECOND = 32_768
"""Each checkpoint writes the whole output again: behind a long one the next waits longer, so that a turn writes no
more than this. Half a second for all but the longest answers."""

DEADLINE_GRACE_SECONDS = 2.0
"""chat_shell reports a passed deadline itself; this is for when it cannot."""

SIGNAL_PAUSE_SECONDS = 1.0
"""Between attempts to listen while the carrier of signals is away."""


class RunTurn:
    """Runs turns; each call is one task of the process."""

    def __init__(
        self,
        ports: TurnPorts,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS,
    ) -> None:
        self._ports = ports
        self._checkpoint_seconds = checkpoint_seconds
        self._finish_pauses_seconds = finish_pauses_seconds

    async def __call__(self, turn: Turn, opened: asyncio.Event) -> StoredResponse:
        """Run a turn and return it as it ended; `opened` is set once its first events can be read.

        Whatever breaks becomes a failed response with what was said so far. When the task itself is
        cancelled nothing more is stored: the next start of a process finds the turn and closes it.
        """
        writer = TurnWriter(self._ports, turn, self._finish_pauses_seconds)
        outcome = await result_or_error(self._converse(turn, writer, opened))
        ending = outcome if isinstance(outcome, Ending) else self._broken(turn, outcome)
        response = await writer.finish(ending)
        self._ports.observer.turn_finished(response)
        return response

    def _tell_start(self, turn: Turn) -> None:
        self._ports.observer.turn_started(turn.response, turn.request.request_id)
        if turn.starts_epoch:
            self._ports.observer.epoch_started(turn.request.conversation_id, turn.request.epoch, turn.epoch_reason)

    async def _converse(self, turn: Turn, writer: TurnWriter, opened: asyncio.Event) -> Ending:
        inbox = BatchBuffer[ExecutionEvent](MAX_WAITING_EVENTS)
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            # Sending comes first: whatever is done here before it, the user waits for.
            reader = group.create_task(result_or_error(self._read(turn.request, inbox)))
            await group.create_task(writer.open())
            opened.set()
            self._tell_start(turn)
            watcher = group.create_task(self._stop_when_asked(turn.response.id, reader))
            group.create_task(self._keep_checkpoints(writer, ended))
            while batch := await inbox.take():
                await writer.write(batch)
                if writer.is_cut:
                    reader.cancel()
            await writer.write_rest()
            watcher.cancel()
            ended.set()
        if writer.ending is not None:
            return writer.ending
        if reader.cancelled():
            return Ending(status=ResponseStatus.CANCELLED)
        outcome = reader.result()
        if not isinstance(outcome, BallastError):
            raise outcome
        return failed(report_of(outcome), Usage())

    async def _read(self, request: ExecutionRequest, inbox: BatchBuffer[ExecutionEvent]) -> BallastError:
        """Read to the end of the stream; return why it may have ended early."""
        left_seconds = remaining_seconds(request.deadline, self._ports.clock.now())
        stream = cast(AsyncGenerator[tuple[ExecutionEvent, ...]], self._ports.chat_shell.execute(request))
        try:
            async with asyncio.timeout(left_seconds + DEADLINE_GRACE_SECONDS), aclosing(stream) as batches:
                async for batch in batches:
                    await inbox.put(batch)
            return ChatShellUnavailable("The answer broke off.")
        except TimeoutError:
            return DeadlineExceeded("The turn took too long.")
        except BallastError as error:
            return error
        finally:
            inbox.close()

    async def _stop_when_asked(self, response_id: str, reader: asyncio.Task[BaseException]) -> None:
        """Cancel the reader once somebody has asked for it; what has arrived by then still counts."""
        while True:
            try:
                await self._ports.signals.wait(response_id)
            except Unavailable:
                await asyncio.sleep(SIGNAL_PAUSE_SECONDS)
            else:
                reader.cancel()
                return

    async def _keep_checkpoints(self, writer: TurnWriter, ended: asyncio.Event) -> None:
        pause_seconds = self._checkpoint_seconds
        while not await _is_set_within(ended, pause_seconds):
            written = await writer.checkpoint()
            pause_seconds = max(self._checkpoint_seconds, written / CHECKPOINT_CHARACTERS_A_SECOND)

    def _broken(self, turn: Turn, error: BaseException) -> Ending:
        self._ports.observer.turn_broke(turn.response.id, error)
        known = _first_known(error)
        return failed(report_of(known or InternalError("The turn failed for an internal reason.")), Usage())


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _first_known(error: BaseException) -> BallastError | None:
    if isinstance(error, BallastError):
        return error
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next((known for known in map(_first_known, inner) if known is not None), None)
    return None
