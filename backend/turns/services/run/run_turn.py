"""Running one turn from its first event to its stored end, whether or not a client listens."""

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import NamedTuple, Self, cast

from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.foundation.services.supervision import result_or_error
from backend.openai_api.domain.response_object import Ending, build_failure
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS
from backend.turns.domain.queued_request import name_queued_signal, name_steer_signal
from backend.turns.domain.turn import Turn
from backend.turns.services.run.checkpoints import CheckpointWriter
from backend.turns.services.run.execution_reader import ExecutionReader
from backend.turns.services.run.executions import Executions
from backend.turns.services.run.turn_writer import ScannedTurnWriter, TurnWriter
from backend.turns.services.running_turn import TurnSignals
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, ChatShellSilent, Conflict, InternalError, TurnTaken, Unavailable
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
        ending = outcome if isinstance(outcome, Ending) else end_with_defect(ports, turn.response.id, outcome)
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
    async with asyncio.TaskGroup() as group, aclosing(ExecutionReader(ports)) as reader:
        executions = Executions(ports, turn, reader, writer, turn_signals.boundary)
        # Nothing runs whose first event nobody can read: another process would take the turn over and run it again.
        await writer.open()
        executions.start()
        # behind the request in this loop's queue: chat_shell is at work while an answer begins
        asyncio.get_running_loop().call_soon(turn_signals.opened.set)
        # in this task and before its watchers: the turn's ids stand on all their lines from here on
        _observe_start(ports, turn)
        with _Watchers(group) as watchers:
            watchers.start(_heed_signals(ports, turn_signals, reader, writer, watchers))
            with (
                turn_signals.interrupted.calling(reader.stop),
                writer.taken.calling(lambda: watchers.start(_stop_taken())),
                _marking_shown_calls(ports, writer, checkpoints, watchers),
                checkpoints.following(writer),
            ):
                await executions.run()
    if writer.ending is not None:
        return writer.ending
    if isinstance(reader.error, ChatShellSilent) and not reader.is_stopped and writer.has_shown_of_call:
        return writer.build_interruption()
    if reader.error is not None and not reader.is_stopped:
        return build_failure(report_of(reader.error), writer.usage_before)
    if not turn_signals.interrupted.is_set():
        return Ending(status=ResponseStatus.CANCELLED, usage=writer.usage_before)
    return HandedOver() if turn.is_stored and not writer.has_shown_of_call else writer.build_interruption()


def _observe_start(ports: TurnPorts, turn: Turn) -> None:
    ports.observer.turn_started(turn.response, turn.request.request_id)
    if turn.starts_epoch and turn.begun is None:
        ports.observer.epoch_started(turn.request.conversation_id, turn.request.epoch, turn.epoch.reason)


class _Watchers:
    """Tasks beside a running turn, which end with it."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[object, None, None]) -> None:
        self._tasks.append(self._group.create_task(work))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # the frames of these tasks hold this object: it lets go of them, so that none is left for the cycle collector
        while self._tasks:
            self._tasks.pop().cancel()


async def _heed_signals(
    ports: TurnPorts, turn_signals: TurnSignals, reader: ExecutionReader, writer: TurnWriter, watchers: _Watchers
) -> None:
    """Stop the turn, have it pause, or note that others wait for its end, as signals say.

    Events that have arrived by the time of a stop are still written.
    """
    stop, queued = writer.response_id, name_queued_signal(writer.response_id)
    awaited = [stop, queued, name_steer_signal(writer.response_id, writer.entered_count)]
    while (heard := await wait_for_signal(ports, *awaited)) != stop:
        turn_signals.waited_for.set()
        awaited.remove(heard)
        if heard != queued:
            watchers.start(_pause_again_and_again(ports, writer, turn_signals.boundary))
    turn_signals.waited_for.set()  # it may be for another turn that it stops
    reader.stop()


async def _pause_again_and_again(ports: TurnPorts, writer: TurnWriter, boundary: asyncio.Event) -> None:
    """Have the turn pause before its next model call, as a message waits for it; and for each that comes later."""
    while True:
        boundary.set()
        await writer.has_entered.wait()
        writer.has_entered.clear()
        await wait_for_signal(ports, name_steer_signal(writer.response_id, writer.entered_count))


async def wait_for_signal(ports: TurnPorts, *names: str) -> str:
    """Return the first of these signals that arrives."""
    while True:
        try:
            return await ports.signals.wait(*names)
        except Unavailable:
            await asyncio.sleep(SIGNAL_PAUSE_SECONDS)


async def _stop_taken() -> None:
    raise TurnTaken("The turn has ended, or another process has taken it over.")


@contextmanager
def _marking_shown_calls(
    ports: TurnPorts, writer: TurnWriter, checkpoints: CheckpointWriter, watchers: _Watchers
) -> Generator[None]:
    """Store soon that a model call must not run again, where the events die with this process."""
    timers: list[asyncio.TimerHandle] = []

    def mark() -> None:
        if not writer.is_call_stored:
            watchers.start(checkpoints.store(writer))

    def mark_soon() -> None:
        if ports.stored.lease.terms is None:
            timers.append(asyncio.get_running_loop().call_later(MARK_SECONDS, mark))

    with writer.call_shown.calling(mark_soon):
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


def is_taken(outcome: object) -> bool:
    """Say whether a turn ended here because another process has taken it over."""
    if isinstance(outcome, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", outcome).exceptions
        return any(is_taken(error) for error in inner)
    return isinstance(outcome, TurnTaken)


def end_with_defect(ports: TurnPorts, response_id: str, error: BaseException) -> Ending:
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
