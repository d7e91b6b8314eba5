"""Running one turn from its first event to its stored end, whether or not a client listens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.turns.domain.response_object import Ending, failed
from backend.turns.services.checkpoints import CheckpointWriter
from backend.turns.services.turn_ports import Turn, TurnPorts
from backend.turns.services.turn_writer import FINISH_PAUSES_SECONDS, TurnWriter
from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded, InternalError, Unavailable
from shared.models.error_reports import report_of
from shared.models.events import ExecutionEvent, Usage
from shared.models.execution import ExecutionRequest, remaining_seconds

MAX_WAITING_EVENTS = 256
"""With more events than this unwritten the reader waits; flow control then slows chat_shell and the provider, too."""

DEADLINE_GRACE_SECONDS = 2.0
"""chat_shell reports a passed deadline itself; this timeout is for a chat_shell that cannot."""

SIGNAL_PAUSE_SECONDS = 1.0
"""Pause between attempts to listen for a stop signal while the carrier of signals is unavailable."""


async def run_turn(
    ports: TurnPorts,
    turn: Turn,
    opened: asyncio.Event,
    checkpoints: CheckpointWriter,
    finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS,
) -> StoredResponse:
    """Run a turn and return its response as it ended; `opened` is set once its first events can be read.

    Any failure becomes a failed response with the output so far. When the task itself is cancelled nothing more is
    stored: recovery closes the turn, in another replica soon, else at the next start of this one.
    """
    writer = TurnWriter(ports, turn, finish_pauses_seconds)
    outcome = await result_or_error(_converse(ports, turn, writer, opened, checkpoints))
    ending = outcome if isinstance(outcome, Ending) else _ending_of_defect(ports, turn, outcome)
    response = await writer.finish(ending)
    ports.observer.turn_finished(response)
    return response


async def _converse(
    ports: TurnPorts, turn: Turn, writer: TurnWriter, opened: asyncio.Event, checkpoints: CheckpointWriter
) -> Ending:
    inbox = BatchBuffer[ExecutionEvent](MAX_WAITING_EVENTS)
    async with asyncio.TaskGroup() as group:
        # The request is sent first: the user waits for all that is done here before it.
        reader = group.create_task(result_or_error(_read(ports, turn.request, inbox)))
        await group.create_task(writer.open())
        opened.set()
        _observe_start(ports, turn)
        watcher = group.create_task(_cancel_on_signal(ports, turn.response.id, reader))
        with checkpoints.following(writer):
            while batch := await inbox.take():
                await writer.write(batch)
                if writer.is_cut:
                    reader.cancel()
            await writer.write_rest()
        watcher.cancel()
    if writer.ending is not None:
        return writer.ending
    if reader.cancelled():
        return Ending(status=ResponseStatus.CANCELLED)
    outcome = reader.result()
    if not isinstance(outcome, BallastError):
        raise outcome
    return failed(report_of(outcome), Usage())


def _observe_start(ports: TurnPorts, turn: Turn) -> None:
    ports.observer.turn_started(turn.response, turn.request.request_id)
    if turn.starts_epoch:
        ports.observer.epoch_started(turn.request.conversation_id, turn.request.epoch, turn.epoch_reason)


async def _read(ports: TurnPorts, request: ExecutionRequest, inbox: BatchBuffer[ExecutionEvent]) -> BallastError:
    """Read chat_shell's events to the end of the stream; return the error to report if no terminal event came."""
    left_seconds = remaining_seconds(request.deadline, ports.clock.now())
    stream = cast(AsyncGenerator[tuple[ExecutionEvent, ...]], ports.chat_shell.execute(request))
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


async def _cancel_on_signal(ports: TurnPorts, response_id: str, reader: asyncio.Task[BaseException]) -> None:
    """Cancel the reader when the turn's stop signal arrives; events that have arrived by then are still written."""
    while True:
        try:
            await ports.signals.wait(response_id)
        except Unavailable:
            await asyncio.sleep(SIGNAL_PAUSE_SECONDS)
        else:
            reader.cancel()
            return


def _ending_of_defect(ports: TurnPorts, turn: Turn, error: BaseException) -> Ending:
    ports.observer.turn_broke(turn.response.id, error)
    known = _first_known(error)
    return failed(report_of(known or InternalError("The turn failed for an internal reason.")), Usage())


def _first_known(error: BaseException) -> BallastError | None:
    if isinstance(error, BallastError):
        return error
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next((known for known in map(_first_known, inner) if known is not None), None)
    return None
