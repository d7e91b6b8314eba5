"""Writing a running turn: events for clients, entries for the log, checkpoints, and its end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.model_calls import CallsMade
from backend.conversations.domain.responses import Checkpoint, Exchange, FinishedTurn, ItemBody, StoredResponse
from backend.conversations.domain.seen_chain import answer_seen, extended
from backend.conversations.domain.turn_calls import CallRecorder, FirstPrompt, SentCall
from backend.conversations.domain.turn_entries import numbered_items
from backend.conversations.domain.turn_log import TurnLog
from backend.restricted.services.outgoing_scan import OutgoingScan
from backend.turns.domain.response_events import LoggedEvent
from backend.turns.domain.response_object import Ending, ResponseBody, failed, finished, interrupted
from backend.turns.domain.response_projection import ResponseProjection
from backend.turns.services.turn_ports import Turn, TurnPorts
from shared.errors import BallastError, Conflict, Unavailable
from shared.ids import new_id
from shared.models.coalescing import coalesced
from shared.models.events import (
    ExecutionEvent,
    MessagesAdded,
    ReasoningDelta,
    TextDelta,
    TurnFailed,
    TurnFinished,
    Usage,
    add_usage,
)
from shared.models.execution import AccessMode
from shared.models.values import objects_in

Result = TypeVar("Result")

FINISH_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses between attempts to store the end while the database is unavailable; the last one repeats.

The attempts never stop: a turn without a stored end would block its conversation while this process runs.
"""

_DELTAS = (TextDelta, ReasoningDelta)


class Settled(NamedTuple):
    """The number of the newest event that belongs to what is in the log, and the items until then."""

    number: int
    output: tuple[ItemBody, ...]


class TurnWriter:
    """Writes one turn; `ending` is None until chat_shell has reported the end, or the outgoing scan has ended the turn.

    `call_shown` is set when clients get the first of a model call; who waits for it clears it. `taken` is set once
    another process has taken the turn over.
    The output of a restricted turn is scanned before anything is written; an unrestricted turn has no scan.
    """

    def __init__(
        self, ports: TurnPorts, turn: Turn, finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS
    ) -> None:
        self._ports = ports
        self._finish_pauses_seconds = finish_pauses_seconds
        self._turn = turn
        self._projection = ResponseProjection(turn.response.body, new_id, with_results=turn.with_results)
        if turn.begun is not None:
            self._projection.restore(turn.begun.shown)
        self.usage_before = turn.begun.usage if turn.begun is not None else Usage()
        has_entries = bool(turn.request.added)
        self._log = TurnLog(turn.response.id, turn.request.epoch, turn.log_length, has_entries=has_entries)
        self._calls = CallRecorder(
            FirstPrompt(turn.request, turn.log_length, turn.keeps_context, turn.declared_reset, turn.sent)
        )
        self._stored_length = turn.log_length
        self._shown_number = self._checkpointed_number = self._projection.last_number
        self._settled = Settled(self._projection.last_number, ())
        self._are_events_lost = False
        self._lapses = self._lapses_checked = ports.lease.lapses
        self._newest_delta_at: datetime | None = None
        self._not_measured: list[ExecutionEvent] = []
        restricted = turn.request.knowledge.access_mode is not AccessMode.FULL
        self._scan = OutgoingScan(ports.outgoing, turn.request) if restricted else None
        self.ending: Ending | None = None
        self.call_shown = asyncio.Event()
        self.taken = asyncio.Event()

    async def open(self) -> None:
        """Append the first events, unless another process has done so."""
        if self._turn.begun is None:
            await self._append_events(self._projection.start())
            self._settled = Settled(self._shown_number, ())

    @property
    def has_shown_of_call(self) -> bool:
        """Whether clients have got anything of the model call that runs, or of its tools."""
        return self._shown_number > self._settled.number

    @property
    def is_cut(self) -> bool:
        """Whether the outgoing scan has ended the answer: later events are not written."""
        return self._scan is not None and self._scan.cut_for is not None

    @property
    def is_call_stored(self) -> bool:
        """Whether a checkpoint holds something of the model call that runs."""
        return self._checkpointed_number > self._settled.number

    async def write(self, batch: Sequence[ExecutionEvent]) -> None:
        """Write events of chat_shell; a restricted turn writes those that the scan lets through now."""
        if self._scan is None:
            await self._write(batch)
            return
        was_cut = self.is_cut
        await self._write(await self._scan.passed(batch))
        self._observe_cut(was_cut)

    async def write_rest(self) -> None:
        """Write the events that the scan still holds back, at the end of the stream."""
        if self._scan is None:
            return
        was_cut = self.is_cut
        await self._write(await self._scan.rest())
        self._observe_cut(was_cut)

    def _observe_cut(self, was_cut: bool) -> None:
        if self._scan is not None and self._scan.cut_for is not None and not was_cut:
            seconds = (self._ports.clock.now() - self._turn.received_at).total_seconds()
            self._ports.observer.answer_cut(self._turn.response, self._scan.cut_for, seconds)

    async def _write(self, batch: Sequence[ExecutionEvent]) -> None:
        """Write the events for clients first, then the log."""
        logged: list[LoggedEvent] = []
        settled = self._settled
        for event in coalesced(batch):
            self._log.feed(event)
            logged.extend(self._projection.feed(event))
            match event:
                case TextDelta() | ReasoningDelta():
                    continue
                case MessagesAdded() if self._log.holds_whole_exchanges:
                    settled = Settled(self._projection.last_number, tuple(self._projection.output()))
                case TurnFinished():
                    self.ending = finished(event.finish_reason, self._whole(event.usage))
                case TurnFailed():
                    self.ending = failed(event.error, self._whole(event.usage))
                case _:
                    continue
        await self._append_events(logged)
        now = self._ports.clock.now()
        self._observe(batch, now)
        self._not_measured.extend(event for event in batch if not isinstance(event, _DELTAS))
        if self._newest_delta_at is not None:
            self._measure_calls()
        entries = self._log.complete_exchange(now)
        if entries and self._turn.is_stored:
            await self._append_entries(entries, settled)

    def new_checkpoint(self) -> Checkpoint | None:
        """Return the output so far, None where it is stored already.

        After the lease has lapsed it is stored once more: that shows whether another process has taken the turn over.
        """
        self._measure_calls()
        calls = self._calls.unstored_calls(self._stored_length)
        is_new = self._shown_number != self._checkpointed_number or self._lapses_checked != self._ports.lease.lapses
        if not self._turn.is_stored or not (is_new or calls.calls):
            return None
        self._lapses = self._ports.lease.lapses
        return Checkpoint(self._turn.response.hold, self._projection.output(), self._shown_number, calls)

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Note that a checkpoint was stored."""
        self._checkpointed_number = checkpoint.last_event
        self._lapses_checked = self._lapses
        self._calls.note_stored(checkpoint.calls)

    def note_taken(self) -> None:
        """Note that a checkpoint was refused."""
        self.taken.set()

    def interrupted(self) -> Ending:
        """Return the ending of a turn that this process must stop."""
        return interrupted(self.usage_before)

    async def finish(self, ending: Ending) -> StoredResponse | None:
        """Store the end, then append the terminal event: clients get it for a stored end only.

        Return the stored response: where another process has ended the turn, as that one stored it; None where another
        process has taken the turn over and runs it.
        """
        now = self._ports.clock.now()
        body, last_events = self._projection.finish(ending, int(now.timestamp()))
        ended = self._ended_turn(ending, body, now)
        try:
            stored = await self._store_end(ended)
        except BallastError:
            await self._close_events()
            raise
        if stored != ended.response:
            self._ports.events.leave(self._turn.response.id)
            return stored
        try:
            await self._append_last_events(last_events)
        finally:
            await self._close_events()
        return stored

    async def _append_last_events(self, last_events: list[LoggedEvent]) -> None:
        """Append the last events, unless earlier ones were lost: readers then use the stored response."""
        if last_events[0].sequence_number != self._shown_number + 1:
            return
        with suppress(Conflict):
            await self._append_events(last_events)

    async def _close_events(self) -> None:
        """Close the event log; where it cannot be reached, readers use the stored response."""
        try:
            await self._ports.events.close(self._turn.response.id)
        except (Conflict, Unavailable):
            return

    def _ended_turn(self, ending: Ending, body: ResponseBody, now: datetime) -> FinishedTurn:
        entries = self._log.end(now, is_success=ending.is_success)
        items = numbered_items(objects_in(body["output"]), self._turn.next_sequence, self._turn.response.id)
        changes = {
            "status": ending.status,
            "body": body,
            "log_end": self._log.length,
            "items_end": self._turn.next_sequence + len(items),
            "last_event": self._projection.last_number,
            "seen": self._seen(ending, body),
        }
        response = self._turn.response.model_copy(update=changes)
        return FinishedTurn(response=response, entries=entries, items=items, calls=self._last_calls(entries))

    def _seen(self, ending: Ending, body: ResponseBody) -> str | None:
        """Return what the client has seen at the end; None where its answer was cut, or is not that of the log."""
        answer = answer_seen(objects_in(body["output"])) if ending.is_whole else None
        chain = extended(self._turn.seen, (answer,)) if answer is not None else None
        return chain.digest if chain is not None else None

    def _last_calls(self, entries: Sequence[Entry]) -> CallsMade:
        """Return the calls to store with the end; later requests do not extend the prompt of a void turn."""
        self._measure_calls()
        made = self._calls.changed_calls()
        is_void = any(entry.kind is EntryKind.VOID for entry in entries)
        return made.model_copy(update={"sent": None}) if is_void else made

    async def _store_end(self, ended: FinishedTurn) -> StoredResponse | None:
        """Store the end unless one is stored; return the stored response, or an unstored turn's ended one.

        None: another process has taken the turn over, and it is not over.
        """
        if not self._turn.is_stored:
            return ended.response
        return await self._until_stored(lambda: self._stored_end(ended))

    async def _stored_end(self, ended: FinishedTurn) -> StoredResponse | None:
        turns = self._ports.turns
        if await turns.finish(ended):
            return ended.response
        stored = await turns.find(ended.response.id)
        return None if stored is not None and not stored.status.is_terminal else stored or ended.response

    async def _until_stored(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat work while the database is unavailable; it must change nothing where it was done already."""
        pauses_seconds = chain(self._finish_pauses_seconds, repeat(self._finish_pauses_seconds[-1]))
        while True:
            try:
                return await work()
            except Unavailable:
                await asyncio.sleep(next(pauses_seconds))

    async def _append_events(self, events: list[LoggedEvent]) -> None:
        """Append events; where the event log stays away, the turn goes on without: its answer is stored all the same.

        The first events are an exception, because nobody could follow.
        """
        if not events:
            return
        if self._turn.is_stored:
            await self._ports.lease.held()
        if not self._are_events_lost:
            try:
                await self._ports.events.append(self._turn.response.id, events)
            except Unavailable as error:
                if self._shown_number < 0:
                    raise
                self._are_events_lost = True
                self._ports.background.report("turn_events", error)
        if events[-1].sequence_number > self._settled.number >= self._shown_number:
            self.call_shown.set()
        self._shown_number = events[-1].sequence_number

    async def _append_entries(self, entries: Sequence[Entry], settled: Settled) -> None:
        self._measure_calls()
        length, calls = self._log.length - len(entries), self._calls.changed_calls()
        exchange = Exchange(entries=tuple(entries), output=settled.output, last_event=settled.number, calls=calls)
        await self._until_stored(lambda: self._ports.turns.append(self._turn.response.hold, length, exchange))
        self._stored_length = self._log.length
        self._settled = settled
        self._calls.note_stored(calls)

    def _whole(self, usage: Usage) -> Usage:
        """Add the usage of the model calls that another process has made."""
        return add_usage(self.usage_before, usage)

    def _measure_calls(self) -> None:
        """Measure the prompts of model calls; a long log takes milliseconds, so this waits for the first delta."""
        events, self._not_measured = self._not_measured, []
        for event in events:
            begun = self._calls.feed(event)
            if begun is not None:
                self._observe_call(begun)

    def _observe_call(self, begun: SentCall) -> None:
        self._ports.observer.prompt_sent(begun.call.reuse.tokens, begun.new_tokens)
        if begun.drifted_at is not None:
            response = self._turn.response
            self._ports.observer.prompt_drifted(response, begun.call.call, begun.drifted_at)

    def _observe(self, batch: Sequence[ExecutionEvent], now: datetime) -> None:
        count = sum(isinstance(event, _DELTAS) for event in batch)
        if not count:
            return
        since = self._newest_delta_at
        if since is None:
            self._ports.observer.first_delta((now - self._turn.received_at).total_seconds())
        else:
            self._ports.observer.deltas(count, (now - since).total_seconds())
        self._newest_delta_at = now
