"""Compacting a conversation on request: into its user's messages, and a summary that the client carries."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from backend.conversations.domain.carried_summaries import CarriedSummary, build_carrying_item
from backend.conversations.domain.conversation_log import Entry, newest_epoch_state, select_sent
from backend.conversations.domain.responses import Item, ItemBody
from backend.conversations.domain.withheld import empty_item
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.knowledge.domain.labels import Labels, encode_labels, join_labels, name_turn
from backend.limits.services.turn_rates import TurnRates
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.truncation import Truncation, find_left_out_by_input, labels_of_omission
from backend.prompt.domain.turn_calls import SummaryCall
from backend.turns.domain.turn import Turn
from backend.turns.ports.observer import CompactionOutcome
from backend.turns.ports.preparation import TurnPreparation
from backend.turns.services.run.execution_reader import ExecutionReader
from backend.turns.services.run.summarise import Summarise, Summary
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import BallastError, DeadlineExceeded, InvalidRequest, ModelUnavailable, PermissionDenied
from shared.models.events import Usage, add_usage
from shared.models.values import objects_in
from shared.prompts.summary import is_left_out_mark

NO_USAGE = Usage(input_tokens=0, output_tokens=0)


class CompactedInput(NamedTuple):
    """What a conversation was compacted to."""

    id: str
    created_at: int
    output: tuple[ItemBody, ...]
    usage: Usage


class _Record:
    """Records the calls that make a summary; they are stored nowhere."""

    def __init__(self, log: Sequence[Entry]) -> None:
        self.log = log
        self.usage = NO_USAGE

    def add_summary(self, made: SummaryCall) -> None:
        self.usage = add_usage(self.usage, made.usage)


class CompactInput:
    """Compacts what a turn would send; nothing is stored. `secret` seals what clients carry."""

    def __init__(
        self,
        ports: TurnPorts,
        prepare: TurnPreparation,
        registry: TurnRegistry,
        admission: Admission,
        rates: TurnRates,
        secret: str,
    ) -> None:
        self._ports = ports
        self._prepare = prepare
        self._registry = registry
        self._admission = admission
        self._rates = rates
        self._secret = secret

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, left: asyncio.Event
    ) -> CompactedInput:
        """Return the messages of the user and a summary of all; who sets `left` ends the model's call.

        Raises:
            InvalidRequest: there is nothing to compact, or it is too long to be summarised.
            PermissionDenied: a restricted reader's summary would show what they may not read.
            ModelUnavailable: the model has made no summary.
            BallastError: as of a turn that cannot begin.
        """
        self._admission.check()
        with await self._rates.take(caller) as rate, self._admission.place(*holders_of(caller)):
            with self._registry.preparing():
                turn, stored, _ = await self._prepare(caller, request, request_id)
                record = _Record(turn.log)
                left_out = _all_of(turn)
                summary = await self._summary(turn, left_out, record, left)
            rate.settle((record.usage.input_tokens or 0) + (record.usage.output_tokens or 0))
        if summary.text is None:
            raise _failure(summary.outcome)
        label = encode_labels(_labels_of(left_out, turn))
        carried = CarriedSummary(tenant=caller.tenant, user_id=caller.user_id, label=label, text=summary.text)
        said = _messages_of_user(stored.items, turn)
        output = (*said, build_carrying_item(carried, self._secret))
        return CompactedInput(turn.response.id, int(turn.response.created_at.timestamp()), output, record.usage)

    async def _summary(self, turn: Turn, left_out: Truncation, record: _Record, left: asyncio.Event) -> Summary:
        if turn.card is None or not left_out.entries:
            raise InvalidRequest("There is nothing to compact; give 'input' or 'previous_response_id'.", param="input")
        async with asyncio.TaskGroup() as group, aclosing(ExecutionReader(self._ports)) as reader:
            leaving = group.create_task(_stop_when(left, reader))
            summarise = Summarise(self._ports, reader, record, turn.card, may_be_longer=True)
            summary = await summarise(turn.request, left_out)
            leaving.cancel()
        return summary


async def _stop_when(left: asyncio.Event, reader: ExecutionReader) -> None:
    await left.wait()
    reader.stop()


def _all_of(turn: Turn) -> Truncation:
    """Return all that the turn would send, and what its length would have left out of that."""
    log = turn.log
    cut, reset = find_left_out_by_input(log, turn.response.id), newest_epoch_state(log)
    sent_by = cut.sent_by if cut is not None else reset
    behind = reset.model_copy(update={"begins_at": len(log)})
    return Truncation(entries=select_sent(log, sent_by), sent_by=sent_by, reset=behind, begins_epoch=True)


def _labels_of(left_out: Truncation, turn: Turn) -> Labels:
    """Return the labels of a summary of a log, which leaves its conversation.

    The newest turn stands for those before it: who may not read one of these may not read it either.
    """
    stored = [entry for entry in turn.log if entry.label and entry.turn_id != turn.response.id]
    readable = [entry for entry in stored if entry.turn_id not in left_out.sent_by.withheld]
    newest = [name_turn(entry.turn_id, entry.label) for entry in readable[-1:]]
    return join_labels([*labels_of_omission(left_out, turn.log), *(label for each in newest for label in each)])


def _messages_of_user(items: Sequence[Item], turn: Turn) -> tuple[ItemBody, ...]:
    """Return the messages of the user as they may read them, without earlier summaries, which the new one tells.

    Files without an id, whose bytes are not kept, go, too.
    """
    reset = newest_epoch_state(turn.log)
    bodies = [
        empty_item(item.body, with_users=reset.withholds_users) if item.response_id in reset.withheld else item.body
        for item in items
        if item.body.get("role") == "user"
    ]
    parts = [[part for part in objects_in(body["content"]) if _is_kept(part)] for body in bodies]
    return tuple({**body, "content": [*kept]} for body, kept in zip(bodies, parts, strict=True) if kept)


def _is_kept(part: ItemBody) -> bool:
    if part["type"] == "input_file":
        return "file_id" in part
    return not is_left_out_mark(str(part.get("text")))


def _failure(outcome: CompactionOutcome) -> BallastError:
    match outcome:
        case CompactionOutcome.TOO_LONG:
            return InvalidRequest("This conversation is too long for its model to summarise.", param="input")
        case CompactionOutcome.WITHHELD:
            return PermissionDenied("A summary of this conversation would show knowledge that you may not read.")
        case CompactionOutcome.TIMED_OUT:
            return DeadlineExceeded("The summary took too long.")
        case _:
            return ModelUnavailable("The model has made no summary.")
