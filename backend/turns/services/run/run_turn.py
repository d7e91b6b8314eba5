"""Running one turn from its first event to its stored end, whether or not a client listens."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_object import Ending, build_failure
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS
from backend.turns.domain.queued_request import queued_signal, steer_signal
from backend.turns.domain.turn import Turn
from backend.turns.services.run.checkpoints import CheckpointWriter
from backend.turns.services.run.execution_reader import ExecutionReader
from backend.turns.services.run.executions import Executions
from backend.turns.services.run.turn_writer import ScannedTurnWriter, TurnWriter
from backend.turns.services.running_turn import TurnSignals
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, Conflict, InternalError, TurnTaken, Unavailable
from shared.models.error_reports import report_of
from shared.models.events import Usage
from shared.models.execution import AccessMode
from shared.tracing import span_of

MARK_SECONDS = 0.05
"""Most short answers end within this time and cost no checkpoint."""

SIGNAL_PAUSE_SECONDS = 1.0
"""Pause between attempts to listen for a stop signal while the carrier of signals is unavailable."""


class HandedOver(NamedTuple):
    """The outcome of a turn that was interrupted before clients got anything of its model call: it may run again."""


async def run_turn(
    ports: TurnPorts,
    turn: Turn,
    turn_signals: TurnSignals,
    checkpoints: CheckpointWriter,
    finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS,
) -> StoredResponse | None:
    """Run a turn and return its response as it ended; None where another process runs it, or is to run it.

    Any failure becomes a failed response with the output so far. When the task itself is cancelled nothing more is
    stored: another replica takes the turn over, or the next start of this one.
    """
    ids = {"ballast.response.id": turn.response.id, "gen_ai.conversation.id": turn.response.conversation_id}
    with span_of("turn", {**ids, "gen_ai.request.model": turn.request.model}) as span:
        writer_class = TurnWriter if turn.request.knowledge.access_mode is AccessMode.FULL else ScannedTurnWriter
        writer = writer_class(ports, turn, finish_pauses_seconds)
        response = await _run(ports, turn, turn_signals, checkpoints, writer)
        span.set({"ballast.outcome": response.status.value if response is not None else "left"})
    return response


async def _run(
    ports: TurnPorts, turn: Turn, turn_signals: TurnSignals, checkpoints: CheckpointWriter, writer: TurnWriter
) -> StoredResponse | None:
    outcome = await result_or_error(_converse(ports, turn, writer, turn_signals, checkpoints))
    if isinstance(outcome, HandedOver):
        with suppress(Unavailable):
            await ports.stored.turns.release(turn.response.hold)
    response = None
    if not isinstance(outcome, HandedOver) and not is_taken(outcome):
        ending = outcome if isinstance(outcome, Ending) else ending_of_defect(ports, turn.response.id, outcome)
        response = await writer.finish(ending)
    if response is None:
        ports.events.leave(turn.response.id)
        ports.observer.turn_left(turn.response)
    else:
        ports.observer.turn_finished(response)
    return response


async def _converse(
    ports: TurnPorts, turn: Turn, writer: TurnWriter, turn_signals: TurnSignals, checkpoints: CheckpointWriter
) -> Ending | HandedOver:
    async with asyncio.TaskGroup() as group:
        reader = ExecutionReader(ports, group)
        executions = Executions(ports, turn, reader, writer, turn_signals.boundary)
        # Nothing runs whose first event nobody can read: another process would take the turn over and run it again.
        await group.create_task(writer.open())
        executions.start()
        turn_signals.opened.set()
        await asyncio.sleep(0)  # the request is sent first
        # in this task and before its watchers: the turn's ids stand on all their lines from here on
        _observe_start(ports, turn)
        watchers = [
            group.create_task(_heed_signals(ports, turn_signals, reader, writer)),
            group.create_task(_cancel_when(turn_signals.interrupted, reader)),
            group.create_task(_mark_shown_calls(ports, writer, checkpoints)),
            group.create_task(_stop_when_taken(writer)),
        ]
        with checkpoints.following(writer):
            await executions.run()
        for watcher in watchers:
            watcher.cancel()
    if writer.ending is not None:
        return writer.ending
    if reader.error is not None and not reader.is_stopped:
        return _ending_of_reader(reader.error, writer)
    if not turn_signals.interrupted.is_set():
        return Ending(status=ResponseStatus.CANCELLED, usage=writer.usage_before)
    return HandedOver() if turn.is_stored and not writer.has_shown_of_call else writer.interrupted()


def _ending_of_reader(outcome: BaseException, writer: TurnWriter) -> Ending:
    if not isinstance(outcome, BallastError):
        raise outcome
    return build_failure(report_of(outcome), writer.usage_before)


def _observe_start(ports: TurnPorts, turn: Turn) -> None:
    ports.observer.turn_started(turn.response, turn.request.request_id)
    if turn.starts_epoch and turn.begun is None:
        ports.observer.epoch_started(turn.request.conversation_id, turn.request.epoch, turn.epoch.reason)


async def _heed_signals(
    ports: TurnPorts, turn_signals: TurnSignals, reader: ExecutionReader, writer: TurnWriter
) -> None:
    """Stop the turn, have it pause, or note that others wait for its end, as signals say.

    Events that have arrived by the time of a stop are still written.
    """
    stop, queued = writer.response_id, queued_signal(writer.response_id)
    awaited = [stop, queued, steer_signal(writer.response_id, writer.entered_count)]
    async with asyncio.TaskGroup() as group:
        while (heard := await signalled(ports, *awaited)) != stop:
            turn_signals.waited_for.set()
            awaited.remove(heard)
            if heard != queued:
                group.create_task(_pause_again_and_again(ports, writer, turn_signals.boundary))
        turn_signals.waited_for.set()  # it may be for another turn that it stops
        reader.stop()


async def _pause_again_and_again(ports: TurnPorts, writer: TurnWriter, boundary: asyncio.Event) -> None:
    """Have the turn pause before its next model call, as a message waits for it; and for each that comes later."""
    while True:
        boundary.set()
        await writer.has_entered.wait()
        writer.has_entered.clear()
        await signalled(ports, steer_signal(writer.response_id, writer.entered_count))


async def signalled(ports: TurnPorts, *names: str) -> str:
    """Return the first of these signals that arrives."""
    while True:
        try:
            return await ports.signals.wait(*names)
        except Unavailable:
            await asyncio.sleep(SIGNAL_PAUSE_SECONDS)


async def _cancel_when(interrupted: asyncio.Event, reader: ExecutionReader) -> None:
    await interrupted.wait()
    reader.stop()


async def _stop_when_taken(writer: TurnWriter) -> None:
    await writer.taken.wait()
    raise TurnTaken("The turn has ended, or another process has taken it over.")


async def _mark_shown_calls(ports: TurnPorts, writer: TurnWriter, checkpoints: CheckpointWriter) -> None:
    """Store soon that a model call must not run again, where the events die with this process."""
    while ports.stored.lease.terms is None:
        await writer.call_shown.wait()
        writer.call_shown.clear()
        await asyncio.sleep(MARK_SECONDS)
        if not writer.is_call_stored:
            await checkpoints.store(writer)


def is_taken(outcome: object) -> bool:
    """Say whether a turn ended here because another process has taken it over."""
    if isinstance(outcome, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", outcome).exceptions
        return any(is_taken(error) for error in inner)
    return isinstance(outcome, TurnTaken)


def ending_of_defect(ports: TurnPorts, response_id: str, error: BaseException) -> Ending:
    """Report an error that no model call ended with, and return the ending of its turn."""
    known = _first_known(error)
    if known is not None and _is_outage(error):
        ports.background.report("turn_events", known)
    else:
        ports.observer.turn_broke(response_id, error)
    return build_failure(report_of(known or InternalError("The turn failed for an internal reason.")), Usage())


def _is_outage(error: BaseException) -> bool:
    """Say whether nothing is wrong but that a store is away, or that others have written the events of a turn."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_outage, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    return isinstance(error, Unavailable | Conflict)


def _first_known(error: BaseException) -> BallastError | None:
    if isinstance(error, BallastError):
        return error
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next((known for known in map(_first_known, inner) if known is not None), None)
    return None
