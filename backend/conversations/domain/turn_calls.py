"""Record the model calls of a running turn, and compare the prompt of each with that of the call before."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import orjson

from backend.conversations.domain.conversation_log import EpochReason
from backend.conversations.domain.model_calls import CallsMade, ModelCall, PromptHeader, TailMessage
from backend.conversations.domain.prompt_record import (
    Measure,
    Reuse,
    SentPrompt,
    Shortfall,
    measured,
    measured_tools,
    reuse_of,
    shortfall_of,
)
from shared.models.canonical import tools_json
from shared.models.events import ExecutionEvent, MessagesAdded, ModelCallFinished, ModelCallStarted
from shared.models.execution import AccessMode, ExecutionRequest, ToolDefinition
from shared.models.messages import Message
from shared.prompts.knowledge_tools import offered_tools
from shared.prompts.message_order import context_index, context_of_request, messages_of_request


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """The prompt of the first model call of a turn.

    `log_length` is the length of the log with the turn's own input. `keeps_context` is true where the context message
    is in the log. `last` is the prompt of the newest call before the turn.
    """

    request: ExecutionRequest
    log_length: int
    keeps_context: bool
    epoch_reason: str | None
    last: SentPrompt | None

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages of the call, in order."""
        return (*messages_of_request(self.request), *self.request.added)


@dataclass(frozen=True, slots=True)
class SentCall:
    """A model call that has started, as observers get it.

    `drifted_at` is the path of the first difference from a call before in the same epoch, or None where there is none.
    """

    call: ModelCall
    new_tokens: int
    drifted_at: str | None


class CallRecorder:
    """Collects the model calls of a turn from its events, and remembers which of them are stored."""

    def __init__(self, start: FirstPrompt) -> None:
        self._start = start
        self._last = start.last
        self._log_length = start.log_length
        self._tools: Measure | None = None
        self._messages: list[Measure] = []
        self._calls: dict[int, ModelCall] = {}
        self._stored: dict[int, ModelCall] = {}
        self._prompt_tokens: dict[int, int] = {}
        self._header = PromptHeader(tools=_text(start.request), system_prompt=start.request.system_prompt)
        self._tail = _tail(start)

    def feed(self, event: ExecutionEvent) -> SentCall | None:
        """Process an event; return the model call where the event starts one."""
        if isinstance(event, ModelCallStarted):
            return self._begin(event.call)
        if isinstance(event, ModelCallFinished):
            self._end(event)
        elif isinstance(event, MessagesAdded):
            self._log_length += len(event.messages)
            if self._calls:
                self._messages.extend(measured(message) for message in event.messages)
        return None

    def changed_calls(self) -> CallsMade:
        """Return the calls that have changed since they were last stored."""
        return self._made(tuple(call for number, call in self._calls.items() if self._stored.get(number) != call))

    def unstored_calls(self, log_length: int) -> CallsMade:
        """Return the calls that were never stored and whose prompts lie within the first `log_length` entries."""
        made = self._made(tuple(call for number, call in self._calls.items() if number not in self._stored))
        held = tuple(call for call in made.calls if call.log_end <= log_length)
        return made if held == made.calls else made.model_copy(update={"calls": held, "sent": None})

    def note_stored(self, made: CallsMade) -> None:
        """Note that these calls have been stored."""
        self._stored.update((call.call, call) for call in made.calls)

    def _made(self, calls: tuple[ModelCall, ...]) -> CallsMade:
        return CallsMade(
            conversation_id=self._start.request.conversation_id,
            response_id=self._start.request.turn_id,
            calls=calls,
            sent=self._last if self._calls else None,
        )

    def _begin(self, number: int) -> SentCall:
        if self._tools is None:
            self._tools = _measure(self._start.request)
            self._messages = [measured(message) for message in self._start.messages]
        request, last = self._start.request, self._last
        reuse = reuse_of(last, self._tools, self._messages)
        self._prompt_tokens[number] = self._tools.tokens + sum(part.tokens for part in self._messages)
        call = ModelCall(
            call=number,
            epoch=request.epoch,
            epoch_reason=None if self._calls else self._start.epoch_reason,
            log_end=self._log_length,
            header=self._header,
            tail=self._tail,
            reuse=reuse,
        )
        self._calls[number] = call
        self._last = self._sent(self._tools)
        new_tokens = self._prompt_tokens[number] - reuse.tokens
        return SentCall(call, new_tokens, _drifted_at(last, request.epoch, reuse))

    def _end(self, event: ModelCallFinished) -> None:
        begun = self._calls.get(event.call)
        if begun is not None:
            shortfall = shortfall_of(begun.reuse, self._prompt_tokens[event.call], event.usage)
            if begun.epoch_reason == EpochReason.MODEL_CHANGED and shortfall is Shortfall.PROVIDER_MISS:
                shortfall = None  # each model has its own cache
            ended = {"usage": event.usage, "cost": event.cost, "shortfall": shortfall}
            self._calls[event.call] = begun.model_copy(update=ended)

    def _sent(self, tools: Measure) -> SentPrompt:
        messages = tuple(part.digest for part in self._messages)
        fixed = self._tail[0].index if self._tail else len(messages)
        return SentPrompt(epoch=self._start.request.epoch, tools=tools.digest, messages=messages, fixed=fixed)


def _drifted_at(last: SentPrompt | None, epoch: int, reuse: Reuse) -> str | None:
    """Return the path of the first difference from a call of the same epoch; None for a call of another epoch."""
    return reuse.first_difference if last is not None and last.epoch == epoch else None


def _tail(start: FirstPrompt) -> tuple[TailMessage, ...]:
    text = "" if start.keeps_context else context_of_request(start.request)
    return (TailMessage(index=context_index(start.request), text=text),) if text else ()


def _text(request: ExecutionRequest) -> str:
    mode = request.knowledge.access_mode
    return _written(offered_tools(request.tools, mode)) if request.tools else _own_text(mode)


def _measure(request: ExecutionRequest) -> Measure:
    mode = request.knowledge.access_mode
    return measured_tools(offered_tools(request.tools, mode)) if request.tools else _own_measure(mode)


@cache
def _own_text(mode: AccessMode) -> str:
    """Return the tools of a turn without functions of the client, which are constants."""
    return _written(offered_tools((), mode))


@cache
def _own_measure(mode: AccessMode) -> Measure:
    return measured_tools(offered_tools((), mode))


def _written(tools: Sequence[ToolDefinition]) -> str:
    return orjson.dumps(tools_json(tools)).decode() if tools else ""
