"""Taking over a turn whose process died or gave it up: its model call runs again, or the turn ends with what was said.

The log and the events decide. Exchanges with tools are in the log and never run twice. A model call of which clients
have got anything is not run again, because its second answer could not continue the first.

Where the event log lacks events of what is stored, they are not shown anew: clients of the process that died may have
got them, in other pieces. The turn goes on behind them, and a reader who misses them is told so.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from backend.conversations.domain.leases import TakenTurn
from backend.conversations.domain.responses import FinishedTurn, OpenedConversation, StoredResponse
from backend.conversations.domain.waiting_turns import Entered
from backend.openai_api.domain.response_events import LoggedEvent, first_events
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.shown_output import ShownOutput
from backend.prompt.domain.compaction import hand_back_tokens
from backend.prompt.domain.execution_request import request_of
from backend.prompt.domain.turn_record import StoredRecord, read_record, record_of, sign
from backend.turns.domain.lanes import lanes_in
from backend.turns.domain.lost_turn import UNSEEN_GAP, RemainingLog, ShownSoFar, close_turn
from backend.turns.domain.turn import JoinedTurn, ResumeState, Turn
from backend.turns.ports.observer import TakeoverOutcome
from backend.turns.services.resume.recover_lanes import MAX_TAKEOVERS, join_again
from backend.turns.services.turn_assembly import FIRST_EVENTS
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import ChatShellUnavailable, Conflict, CorruptRecord, TurnTaken, Unavailable
from shared.ids import new_id
from shared.models.events import ModelCard, Usage, add_usage
from shared.models.execution import AccessMode
from shared.models.values import objects_in


class OrphanedTurn(NamedTuple):
    """A turn that was taken over, and all that is known of it.

    `opened` is None where its log cannot be read, `plan` where none can be read. `is_kept` says that the events are
    kept of all that is stored; otherwise `shown` is what was stored of the output. `is_closed` says that their end was
    written although that of the turn was not stored: nothing can be added to them. `texts` are those of its plan that
    stand in no log, by their digests.
    """

    response: StoredResponse
    plan: StoredRecord | None
    opened: OpenedConversation | None
    shown: ShownOutput
    is_kept: bool
    is_closed: bool
    settled_event: int
    usage: Usage
    entered: tuple[Entered, ...]
    summaries: int
    left_out: tuple[str, ...]
    texts: Mapping[str, str]


class RecoverTurn:
    """Continues turns that this process has taken over; `secret` signs their tickets anew."""

    def __init__(self, ports: TurnPorts, secret: str) -> None:
        self._ports = ports
        self._secret = secret

    async def __call__(self, taken: TakenTurn) -> Turn | JoinedTurn | None:
        """Return the turn to run, or whose lanes to join, or end it and return None.

        Raises:
            Unavailable: the database or the event log is away. The call may be repeated.
            TurnTaken: another process has taken the turn over since.
        """
        turn: Turn | JoinedTurn | None = None
        try:
            is_joined = bool(lanes_in(taken.response.body))
            turn = await (join_again(self._ports, taken) if is_joined else self._run_again_or_ended(taken))
        finally:
            if turn is None:
                self._ports.events.leave(taken.response.id)
        return turn

    async def _run_again_or_ended(self, taken: TakenTurn) -> Turn | None:
        lost = await self._read(taken)
        turn = self._continue(lost, await self._card(lost)) if _may_run_again(lost) else None
        if turn is None:
            await self._end(lost)
            return None
        if not lost.is_kept and lost.shown.next_number == FIRST_EVENTS:
            await self._ports.events.append(taken.response.id, first_events(taken.response.body))
        self._ports.observer.turn_taken_over(lost.response, TakeoverOutcome.RUN_AGAIN)
        return turn

    async def _read(self, taken: TakenTurn) -> OrphanedTurn:
        response = taken.response
        shown = ShownOutput(objects_in(response.body["output"]))
        is_closed = not await self._are_sealed(response, shown)
        is_kept = not is_closed and shown.next_number > response.last_event
        if not is_kept:
            shown.take(objects_in(response.body["output"]), response.last_event + 1)
        settled = taken.settled_event if taken.settled_event is not None else -1
        calls = await self._ports.stored.turns.model_calls(response.id)
        usage = Usage()
        for call in calls:
            usage = add_usage(usage, call.usage or Usage())
        opened = await self._open(response.conversation_id)
        entered = await self._ports.stored.waiting.find_entered(response.id)
        plan = _plan_in(taken)
        digests = [block.digest for block in plan.moved] if plan is not None else []
        texts = await self._ports.stored.turns.find_placed_texts(response.conversation_id, digests)
        summaries = sum(call.summary_of is not None for call in calls)
        left_out = tuple(what for call in calls for what in call.left_out)
        return OrphanedTurn(
            response, plan, opened, shown, is_kept, is_closed, settled, usage, entered, summaries, left_out, texts
        )

    async def _are_sealed(self, response: StoredResponse, shown: ShownOutput) -> bool:
        """Read the events that clients may have got; return False where the log of events is closed."""
        try:
            async for batch in self._ports.events.take_over(response.id, response.fence):
                shown.feed(batch)
        except TurnTaken:
            raise
        except Conflict:
            return False
        return True

    async def _open(self, conversation_id: str) -> OpenedConversation | None:
        """Read the conversation; an unreadable log must not block it, and its next turn reports the error."""
        try:
            return await self._ports.stored.conversations.open(conversation_id, lambda _: True)
        except CorruptRecord:
            return None

    async def _card(self, lost: OrphanedTurn) -> ModelCard | None:
        """Return what is known of the model; without it the turn runs, but nothing can be left out of it."""
        name = lost.opened.conversation.model if lost.opened is not None else None
        with suppress(ChatShellUnavailable):
            return next((card for card in await self._ports.chat_shell.models() if card.name == name), None)
        return None

    def _continue(self, lost: OrphanedTurn, card: ModelCard | None) -> Turn | None:
        """Build the turn to run; None where what is stored of it does not make a request."""
        response, plan, opened = lost.response, lost.plan, lost.opened
        if plan is None or opened is None:
            return None
        log = opened.log
        shown = response.model_copy(update={"body": {**response.body, "output": []}})
        if card is not None:
            limits = plan.limits.model_copy(update={"hand_back_tokens": hand_back_tokens(card)})
            plan = plan.model_copy(update={"limits": limits})
        try:
            record = sign(record_of(plan, shown, opened.conversation, lost.texts), log, self._secret)
            request = request_of(record, log)
        except ValueError:
            return None
        own = log[plan.history_end :]
        return Turn(
            record=record,
            request=request,
            log=tuple(log),
            next_sequence=opened.next_sequence,
            is_stored=True,
            starts_epoch=any(entry.reset is not None for entry in own if entry.turn_id == response.id),
            begun=ResumeState(lost.shown, lost.usage, lost.entered, lost.summaries, lost.left_out),
            card=card,
        )

    async def _end(self, lost: OrphanedTurn) -> None:
        ended, last_events = await self._close(lost)
        if not await self._ports.stored.turns.finish(ended):
            self._ports.events.leave(lost.response.id)
            return
        await self._tell(ended.response.id, last_events if lost.is_kept else ())
        self._ports.observer.turn_taken_over(ended.response, TakeoverOutcome(ended.response.status.value))

    async def _close(self, lost: OrphanedTurn) -> tuple[FinishedTurn, Sequence[LoggedEvent]]:
        response = lost.response
        projection = ResponseProjection(response.body, new_id, with_results=bool(lost.plan and lost.plan.with_results))
        if not lost.is_kept:
            lost.shown.next_number += UNSEEN_GAP
        projection.restore(lost.shown, lost.left_out)
        log = await self._read_remaining_log(lost)
        items = self._ports.stored.conversations.items
        newest = await items(response.conversation_id, after=None, limit=1, descending=True)
        now = self._ports.clock.now()
        told = ShownSoFar(projection, lost.usage, lost.entered)
        return close_turn(response, log, newest[0] if newest else None, told, now)

    async def _read_remaining_log(self, lost: OrphanedTurn) -> RemainingLog:
        if lost.opened is not None:
            return RemainingLog(lost.opened.log, len(lost.opened.log))
        found = await self._ports.stored.conversations.find(lost.response.conversation_id)
        return RemainingLog(None, found.log_length if found is not None else 0)

    async def _tell(self, response_id: str, last_events: Sequence[LoggedEvent]) -> None:
        """Append the last events, and end the log; where that cannot be, readers use the stored response."""
        with suppress(Conflict, Unavailable):
            await self._ports.events.append(response_id, last_events)
            await self._ports.events.close(response_id)
        self._ports.events.leave(response_id)


def _plan_in(taken: TakenTurn) -> StoredRecord | None:
    """Read the plan; a turn of another release may have none, or one that this release cannot read."""
    try:
        return read_record(taken.plan, taken.context_parts) if taken.plan is not None else None
    except ValueError:
        return None


def _may_run_again(lost: OrphanedTurn) -> bool:
    """Say whether the model call that ended with the process may run again.

    Clients must have got nothing of it. The outgoing scan of a restricted turn remembers what was said in earlier
    calls, and that cannot be rebuilt.
    """
    if lost.plan is None or lost.opened is None or lost.is_closed or lost.response.fence > MAX_TAKEOVERS:
        return False
    if max(lost.shown.next_number - 1, lost.response.last_event) > lost.settled_event:
        return False
    has_spoken = any(item["type"] == "message" for item in objects_in(lost.response.body["output"]))
    return lost.plan.access_mode is AccessMode.FULL or not has_spoken
