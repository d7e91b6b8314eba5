"""Writing a running turn: events for clients, entries for the log, checkpoints, and its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind
from backend.conversations.domain.history_fingerprint import answer_seen, extend_chain
from backend.conversations.domain.model_calls import CacheMiss, CallsMade
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import (
    Checkpoint,
    Exchange,
    FinishedTurn,
    ItemBody,
    StoredResponse,
    number_items,
)
from backend.conversations.domain.turn_log import TurnLog
from backend.conversations.domain.waiting_turns import WaitingTurn
from backend.foundation.services.wakeups import CallingEvent
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import (
    Ending,
    ResponseBody,
    build_ending,
    build_failure,
    build_interruption,
)
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.prompt.domain.execution_request import find_unlogged
from backend.prompt.domain.turn_calls import CallRecorder, FirstPrompt, SentCall, SummaryCall
from backend.prompt.domain.turn_entries import with_entered
from backend.restricted.domain.outgoing_events import round_usage
from backend.restricted.services.outgoing_scan import OutgoingScan
from backend.streams.services.retry_while_unavailable import FINISH_PAUSES_SECONDS, retry_while_unavailable
from backend.turns.domain.turn import Turn
from backend.turns.services.run.delta_meter import DELTAS, DeltaMeter
from backend.turns.services.run.shown_events import ShownEvents
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import BallastError, ModelContextOverflow
from shared.ids import new_id
from shared.models.coalescing import coalesce
from shared.models.error_reports import report_of
from shared.models.events import (
    ExecutionEvent,
    MessagesAdded,
    ModelCallFinished,
    TurnEnd,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
    Usage,
    add_usage,
)
from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.models.values import objects_in
from shared.prompts.message_order import read_reminder


class Settled(NamedTuple):
    """The number of the newest event that belongs to what is in the log, and the items until then."""

    number: int
    output: tuple[ItemBody, ...]


class TurnWriter:
    """Writes one turn; `ending` is None until chat_shell has reported the end, or the outgoing scan has ended the turn.

    `log` is the log of the conversation as far as the turn has brought it. `is_handed_back` says that chat_shell waits
    for a further request of the turn, which `go_on` announces. `usage_before` is that of the requests before it.

    `call_shown` is set whenever clients get the first of a model call. `taken` is set once another process has taken
    the turn over, `has_entered` when messages of turns that waited have entered.
    """

    is_cut = False
    """Whether the outgoing scan has ended the answer: later events are not written."""

    def __init__(
        self, ports: TurnPorts, turn: Turn, finish_pauses_seconds: Sequence[float] = FINISH_PAUSES_SECONDS
    ) -> None:
        self._ports = ports
        self._finish_pauses_seconds = finish_pauses_seconds
        self._turn = turn
        self._projection = ResponseProjection(turn.response.body, new_id, with_results=turn.with_results)
        if turn.begun is not None:
            self._projection.restore(turn.begun.shown, turn.begun.left_out)
        self.usage_before = turn.begun.usage if turn.begun is not None else Usage()
        has_entries = any(read_reminder(message) is None for message in turn.request.added)
        use = turn.response.preset_use if turn.request.reminder else None
        agents = (use.agent,) if use is not None else ()
        self.log = list(turn.log)
        self._log = TurnLog(
            turn.response.id, turn.request.epoch, len(turn.log), has_entries=has_entries, reminded_of=agents
        )
        first = self._prompt(turn.request, turn.declared_reset, turn.record.conversation.sent)
        self._calls = CallRecorder(first, turn.card, turn.begun.summaries if turn.begun is not None else 0)
        self._stored_length = len(turn.log)
        self._usage_of_execution = Usage()
        self._checkpointed_number = self._projection.last_number
        self._events = ShownEvents(ports, turn.response.id, self._projection.last_number, is_stored=turn.is_stored)
        self._settled = Settled(self._projection.last_number, tuple(self._projection.output()))
        self._lapses = self._lapses_checked = ports.stored.lease.lapses
        self._deltas = DeltaMeter(ports.observer, turn.response.created_at)
        self._not_measured: list[ExecutionEvent] = []
        self._entered = list(turn.begun.entered) if turn.begun is not None else []
        self.ending: Ending | None = None
        self.is_handed_back = False
        self.handed_back_tokens = 0
        self._is_too_long = False
        self.call_shown = CallingEvent()
        self.taken = CallingEvent()
        self.has_entered = asyncio.Event()

    async def open(self) -> None:
        """Append the first events, unless another process has done so."""
        if self._turn.begun is None:
            await self._events.append(self._projection.start())
            self._settled = Settled(self._events.newest, ())

    def _prompt(self, request: ExecutionRequest, reset: str | None, last: SentPrompt | None) -> FirstPrompt:
        epoch, tail = self._turn.epoch, find_unlogged(self._turn.record, self.log, request)
        before = self.log[self._turn.record.history_end - 1 : self._turn.record.history_end]
        idle_seconds = sum((request.sent_at - entry.created_at).total_seconds() for entry in before)
        placed = epoch.placement, epoch.keeps_skills
        return FirstPrompt(request, len(self.log), reset, last, tail, *placed, idle_seconds)

    @property
    def response_id(self) -> str:
        """The id of the turn's response."""
        return self._turn.response.id

    @property
    def has_shown_of_call(self) -> bool:
        """Whether clients have got anything of the model call that runs, or of its tools."""
        return self._events.newest > self._settled.number

    @property
    def is_overflowed(self) -> bool:
        """Whether the provider found the prompt of the newest model call too long, before it had said anything."""
        return self._is_too_long and not self.has_shown_of_call

    @property
    def is_call_stored(self) -> bool:
        """Whether a checkpoint holds something of the model call that runs."""
        return self._checkpointed_number > self._settled.number

    async def write(self, batch: Sequence[ExecutionEvent]) -> None:
        """Write events of chat_shell, for clients first, then for the log."""
        logged: list[LoggedEvent] = []
        others: list[ExecutionEvent] = []
        settled = self._settled
        for event in coalesce(batch):
            self._log.feed(event)
            logged.extend(self._projection.feed(event))
            if not isinstance(event, DELTAS):
                others.append(event)
                settled = self._settle(event) or settled
        was_shown = self.has_shown_of_call
        await self._events.append(logged)
        if not was_shown and self.has_shown_of_call:
            self.call_shown.set()
        now, has_shown_delta = self._ports.clock.now(), self._deltas.has_begun
        self._deltas.feed(len(batch) - len(others), now)
        self._not_measured += others
        if has_shown_delta and self._not_measured:
            self._measure_calls()
        entries = self._log.complete_exchange(now)
        if entries:
            await self._append_entries(entries, settled)

    def _settle(self, event: ExecutionEvent) -> Settled | None:
        """Take an event that is no delta, which clients get; return what is settled with it, None where nothing is."""
        if isinstance(event, ModelCallFinished):
            self._usage_of_execution = add_usage(self._usage_of_execution, event.usage)
        elif isinstance(event, TurnEnd):
            self._end_execution(event)
        elif isinstance(event, MessagesAdded) and self._log.holds_whole_exchanges:
            return Settled(self._projection.last_number, tuple(self._projection.output()))
        return None

    async def write_rest(self) -> None:
        """Write what is held back at the end of the stream, which is nothing."""

    def _end_execution(self, event: TurnEnd) -> None:
        match event:
            case TurnFinished():
                self.ending = build_ending(event.finish_reason, self._whole(event.usage))
            case TurnFailed():
                self.ending = build_failure(event.error, self._whole(event.usage))
                self._is_too_long = event.error.type == ModelContextOverflow.__name__
            case TurnHandedBack():
                self.is_handed_back, self.handed_back_tokens = True, event.prompt_tokens

    def fail(self, error: BallastError) -> None:
        """End the turn with an error that was found here."""
        self.ending = build_failure(report_of(error), self._whole(self._usage_of_execution))

    def add_summary(self, made: SummaryCall) -> None:
        """Count the call that made a summary to those of the turn."""
        self._measure_calls()
        self._calls.add_summary(made)
        self._usage_of_execution = add_usage(self._usage_of_execution, made.usage)

    async def compact(self, entries: Sequence[Entry]) -> None:
        """Append what stands in the place of what was left out, then show clients that something was.

        In this order the turn may run again wherever this process ends: another one shows what clients miss.
        """
        shown = self._projection.show_compaction()
        settled = Settled(self._projection.last_number, tuple(self._projection.output()))
        await self._append_entries(entries, settled)
        await self._events.append(shown)

    @property
    def may_go_on(self) -> bool:
        """Whether the turn has ended well, and messages of the user may still follow."""
        return self.ending is not None and self.ending.is_success and not self._log.waits_for_client

    async def enter(self, messages: Sequence[UserMessage], waiting: Sequence[WaitingTurn]) -> None:
        """Append messages of turns that wait: the turn goes on with them behind all it added.

        Call it between two executions only, and where no call of the client's functions waits.

        Raises:
            NoLongerWaiting: one of them does not wait any more; nothing has changed.
        """
        settled = Settled(self._projection.last_number, tuple(self._projection.output()))
        grown = self._log.copy()
        entries = grown.enter(messages, self._ports.clock.now())
        steered_by = tuple(each.response.id for each in waiting)
        await self._store_entries(entries, settled, steered_by)
        self._log = grown
        self.log.extend(entries)
        self.ending = None
        self._entered += [each.enter(self._turn.response.id, len(settled.output)) for each in waiting]
        self.has_entered.set()
        self._ports.observer.turn_steered(self._turn.response, len(messages))

    @property
    def entered_count(self) -> int:
        """How many messages of turns that waited have entered."""
        return len(self._entered)

    def go_on(self, request: ExecutionRequest, reset: str | None) -> None:
        """Write what a further request of the turn brings forth, behind what the ones before have brought forth.

        `reset` is why its prompt need not extend the one before, None where it must.
        """
        self._measure_calls()
        self.ending, self.is_handed_back, self.handed_back_tokens, self._is_too_long = None, False, 0, False
        self.usage_before = add_usage(self.usage_before, self._usage_of_execution)
        self._usage_of_execution = Usage()
        self._log.begin_epoch(request.epoch, len(self.log))
        self._calls.go_on(self._prompt(request, reset, None))

    def new_checkpoint(self) -> Checkpoint | None:
        """Return the output so far, None where it is stored already.

        After the lease has lapsed it is stored once more: that shows whether another process has taken the turn over.
        """
        self._measure_calls()
        calls = self._calls.list_unstored_calls(self._stored_length)
        lapses = self._ports.stored.lease.lapses
        is_new = self._events.newest != self._checkpointed_number or self._lapses_checked != lapses
        if not self._turn.is_stored or not (is_new or calls.calls):
            return None
        self._lapses = lapses
        return Checkpoint(self._turn.response.hold, self._projection.output(), self._events.newest, calls)

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Note that a checkpoint was stored."""
        self._checkpointed_number = checkpoint.last_event
        self._lapses_checked = self._lapses
        self._calls.note_added(checkpoint.calls)

    def note_taken(self) -> None:
        """Note that a checkpoint was refused."""
        self.taken.set()

    def build_interruption(self) -> Ending:
        """Return the ending of a turn that this process must stop."""
        return build_interruption(self.usage_before)

    async def finish(self, ending: Ending) -> StoredResponse | None:
        """Store the end, then append the terminal event: clients get it for a stored end only.

        Return the stored response: where another process has ended the turn, as that one stored it; None where another
        process has taken the turn over and runs it.
        """
        now = self._ports.clock.now()
        body, last_events = self._projection.finish(ending, int(now.timestamp()))
        return await self._events.finish(self._end_turn(ending, body, now), last_events, self._finish_pauses_seconds)

    def _end_turn(self, ending: Ending, body: ResponseBody, now: datetime) -> FinishedTurn:
        entries = self._log.end(now, is_success=ending.is_success)
        shown = with_entered(objects_in(body["output"]), self._entered)
        items = number_items(shown, self._turn.next_sequence, self._turn.response.id)
        changes = {
            "status": ending.status,
            "body": body,
            "log_end": self._log.length,
            "items_end": self._turn.next_sequence + len(items),
            "last_event": self._projection.last_number,
            "seen": self._find_seen(ending, body),
        }
        response = self._turn.response.model_copy(update=changes)
        return FinishedTurn(response=response, entries=entries, items=items, calls=self._last_calls(entries))

    def _find_seen(self, ending: Ending, body: ResponseBody) -> str | None:
        """Return what the client has seen at the end; None where its answer was cut, or is not that of the log."""
        if self._entered:
            return None
        answer = answer_seen(objects_in(body["output"])) if ending.is_whole else None
        chain = extend_chain(self._turn.seen, (answer,)) if answer is not None else None
        return chain.digest if chain is not None else None

    def _last_calls(self, entries: Sequence[Entry]) -> CallsMade:
        """Return the calls to store with the end; later requests do not extend the prompt of a void turn."""
        self._measure_calls()
        made = self._calls.list_changed_calls()
        is_void = any(entry.kind is EntryKind.VOID for entry in entries)
        return made._replace(sent=None) if is_void else made

    async def _append_entries(self, entries: Sequence[Entry], settled: Settled) -> None:
        self.log.extend(entries)
        if self._turn.is_stored:
            await self._store_entries(entries, settled, ())

    async def _store_entries(self, entries: Sequence[Entry], settled: Settled, steered_by: tuple[str, ...]) -> None:
        self._measure_calls()
        calls = self._calls.list_changed_calls()
        exchange = Exchange(
            entries=tuple(entries), output=settled.output, last_event=settled.number, calls=calls, steered_by=steered_by
        )
        length, append = self._stored_length, self._ports.stored.turns.append
        await retry_while_unavailable(
            lambda: append(self._turn.response.hold, length, exchange), self._finish_pauses_seconds
        )
        self._stored_length = length + len(entries)
        self._settled = settled
        self._calls.note_stored(calls)

    def _whole(self, usage: Usage) -> Usage:
        """Add the usage of the model calls that another process has made."""
        return add_usage(self.usage_before, usage)

    def _measure_calls(self) -> None:
        """Measure the prompts of model calls, before they are stored, or once what follows the first delta has come.

        A long log takes milliseconds, and no reader gets the first delta before this process lets others run.
        """
        events, self._not_measured = self._not_measured, []
        for event in events:
            begun = self._calls.feed(event)
            if isinstance(begun, CacheMiss):
                self._ports.observer.cache_missed(begun)
            if not isinstance(begun, SentCall):
                continue
            self._ports.observer.prompt_sent(begun.call.reuse.tokens, begun.new_tokens)
            if begun.drifted_at is not None:
                self._ports.observer.prompt_drifted(self._turn.response, begun.call.call, begun.drifted_at)


class ScannedTurnWriter(TurnWriter):
    """Writes a restricted turn, whose output is scanned before anything of it is written."""

    @cached_property
    def _scan(self) -> OutgoingScan:
        return OutgoingScan(self._ports.outgoing, self._turn.request)

    async def write(self, batch: Sequence[ExecutionEvent]) -> None:
        """Write the events that the scan lets through now."""
        await self._write_passed(await self._scan.let_pass(batch))

    async def write_rest(self) -> None:
        """Write the events that the scan still holds back, at the end of the stream."""
        await self._write_passed(await self._scan.rest())

    def go_on(self, request: ExecutionRequest, reset: str | None) -> None:
        """Write what a further request brings forth; what its user has written are their own words."""
        super().go_on(request, reset)
        self._scan.hear(request.knowledge.user_words)

    def add_summary(self, made: SummaryCall) -> None:
        """Count the call that made a summary, as those of a restricted turn are counted."""
        super().add_summary(replace(made, usage=round_usage(made.usage), cost=None))

    async def _write_passed(self, passed: Sequence[ExecutionEvent]) -> None:
        await super().write(passed)
        if self._scan.cut_for is not None and not self.is_cut:
            self.is_cut = True
            seconds = (self._ports.clock.now() - self._turn.response.created_at).total_seconds()
            self._ports.observer.answer_cut(self._turn.response, self._scan.cut_for, seconds)
