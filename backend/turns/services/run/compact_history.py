"""Leaving out an earlier part of the conversation in a running turn: before its first model call, or between two."""

from backend.conversations.domain.conversation_log import Entry
from backend.prompt.domain.execution_request import request_of
from backend.prompt.domain.truncation import (
    PromptBudget,
    Truncation,
    find_left_out_by_input,
    leave_out_of_running,
    summary_entry,
)
from backend.turns.domain.summary_request import count_fixed_tokens, request_tokens
from backend.turns.domain.turn import Turn
from backend.turns.ports.observer import CompactionOutcome
from backend.turns.services.run.execution_reader import ExecutionReader
from backend.turns.services.run.summarise import Summarise, Summary
from backend.turns.services.run.turn_writer import TurnWriter
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import CONTEXT_EXCEEDED, ContextTooLong, ModelContextOverflow
from shared.models.events import ModelCard
from shared.models.execution import ExecutionRequest
from shared.tokens import estimate_tokens


def due_at_start(turn: Turn) -> Truncation | None:
    """Return what the turn's input leaves out, where no summary of it was tried yet."""
    if turn.card is None or turn.has_shown_compaction:
        return None
    return find_left_out_by_input(turn.log, turn.response.id)


def is_long_when_taken_over(turn: Turn) -> bool:
    """Say whether a turn that another process has begun would have been handed back before its next model call."""
    limit = turn.request.limits.hand_back_tokens
    return bool(turn.request.added) and limit is not None and request_tokens(turn.request) >= limit


class CompactHistory:
    """Compacts the conversation of one turn; the log tells another process how far it has come."""

    def __init__(self, ports: TurnPorts, turn: Turn, reader: ExecutionReader, writer: TurnWriter) -> None:
        self._ports = ports
        self._turn = turn
        self._reader = reader
        self._writer = writer
        self._has_overflowed = False

    async def at_start(self, left_out: Truncation) -> None:
        """Put a summary in the place of what the turn's input has left out; without one its notice stands there."""
        await self._put(self._turn.request, left_out)

    async def between_calls(self, request: ExecutionRequest, prompt_tokens: int) -> None:
        """Leave out what must be left out before the next model call; `request` was the newest of the turn.

        `prompt_tokens` is what the next prompt would have, as its provider counts, where that is known.

        Raises:
            ContextTooLong: the newest turn does not fit by itself.
        """
        turn, limit = self._turn, request.limits.hand_back_tokens
        if turn.card is None or limit is None:
            return
        later = request_of(turn.record, self._writer.log)
        if max(prompt_tokens, request_tokens(later)) < limit:
            return
        left_out = self._leave_out(turn.card, request, prompt_tokens)
        if left_out is not None:
            await self._put(request, left_out)

    async def after_overflow(self, request: ExecutionRequest) -> None:
        """Leave out enough that the call is worth another attempt, which a provider has found too long; once a turn.

        Its own count is not known. It was more than the window, or the window is smaller than the operator has said.

        Raises:
            ModelContextOverflow: nothing more can be left out, or it was found too long again.
        """
        card, log = self._turn.card, self._writer.log
        tokens = request_tokens(request_of(self._turn.record, log))
        error = _overflow(tokens, card)
        if card is None or self._has_overflowed:
            raise error
        self._has_overflowed = True
        try:
            left_out = self._leave_out(card, request, max(tokens, card.context_window_tokens))
        except ContextTooLong:
            raise error from None
        if left_out is None or self._tokens_without(left_out) >= tokens:
            raise error
        await self._put(request, left_out)

    def _leave_out(self, card: ModelCard, request: ExecutionRequest, prompt_tokens: int) -> Truncation | None:
        record = self._turn.record
        moved = sum(estimate_tokens(record.texts[block.digest]) for block in record.moved)
        fixed = moved + count_fixed_tokens(request, keeps_context=record.keeps_context)
        return leave_out_of_running(self._writer.log, self._turn.response.id, PromptBudget(card, fixed, prompt_tokens))

    def _tokens_without(self, left_out: Truncation) -> int:
        log = self._writer.log
        entries = summary_entry(left_out, None, log, self._turn.response, self._ports.clock.now())
        return request_tokens(request_of(self._turn.record, (*log, *entries)))

    async def _put(self, request: ExecutionRequest, left_out: Truncation) -> None:
        began_at = self._ports.clock.now()
        summary = await self._summary(request, left_out)
        if self._reader.is_stopped:
            return
        turn, log = self._turn, self._writer.log
        entries = summary_entry(left_out, summary.text, log, turn.response, self._ports.clock.now())
        if summary.text is not None and not self._fits(entries):
            summary = Summary(None, CompactionOutcome.TOO_LONG)
            entries = summary_entry(left_out, None, log, turn.response, self._ports.clock.now())
        await self._writer.compact(entries)
        seconds = (self._ports.clock.now() - began_at).total_seconds()
        self._ports.observer.history_compacted(turn.response, summary.outcome, seconds)
        if left_out.begins_epoch:
            epoch, reason = entries[-1].epoch, left_out.reset.reason
            self._ports.observer.epoch_started(turn.response.conversation_id, epoch, reason)

    async def _summary(self, request: ExecutionRequest, left_out: Truncation) -> Summary:
        card = self._turn.card
        if card is None or not left_out.entries:
            return Summary(None, CompactionOutcome.ELIDED)
        return await Summarise(self._ports, self._reader, self._writer, card)(request, left_out)

    def _fits(self, entries: tuple[Entry, ...]) -> bool:
        card = self._turn.card
        later = request_of(self._turn.record, (*self._writer.log, *entries))
        return card is not None and request_tokens(later) <= card.input_budget_tokens


def _overflow(tokens: int, card: ModelCard | None) -> ModelContextOverflow:
    takes = f"takes {card.input_budget_tokens} in a request" if card is not None else "has a window that is not known"
    return ModelContextOverflow(
        f"{CONTEXT_EXCEEDED} shorter: the provider found the prompt too long, and not enough can be left out of it; "
        f"this turn needs about {tokens} tokens; the model, as it is configured, {takes}; use a shorter input.",
        param="input",
    )
