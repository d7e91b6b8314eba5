"""Record the model calls of a running turn, and compare the prompt of each with that of the call before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import orjson

from backend.conversations.domain.conversation_log import EpochReason, skill_calls
from backend.conversations.domain.model_calls import (
    CacheMiss,
    CallsMade,
    Excerpt,
    Gauge,
    ModelCall,
    PromptHeader,
    TailMessage,
)
from backend.conversations.domain.placed_blocks import ANCHORED, CLASSIC, Placement
from backend.conversations.domain.prompt_record import (
    CACHED_FROM_TOKENS,
    CacheTerms,
    Measure,
    Reuse,
    SentPrompt,
    cause_of_miss,
    measure_message,
    measure_tools,
    reuse_of,
    rewritten_tokens,
    shortfall_of,
)
from backend.prompt.domain.prompt_tail import with_reminder
from shared.models.canonical import tools_json
from shared.models.events import (
    Cost,
    ExecutionEvent,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    Usage,
)
from shared.models.execution import AccessMode, ExecutionRequest, ToolDefinition
from shared.models.messages import AssistantMessage, Message, ToolMessage, UserMessage
from shared.prompts.knowledge_tools import list_offered_tools, tools_of_request
from shared.prompts.message_order import TOOL_RESULT_ELIDED, messages_of_request


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """The prompt of the first model call of a turn.

    `log_length` is the length of the log with the turn's own input. `last` is the prompt of the newest call before the
    turn. `tail` are the messages that stand in no log. `keeps_skills` says that texts of skills stay in later turns.
    `idle_seconds` is the time since the call before.
    """

    request: ExecutionRequest
    log_length: int
    epoch_reason: str | None
    last: SentPrompt | None
    tail: tuple[TailMessage, ...] = ()
    placement: Placement = ANCHORED
    keeps_skills: bool = False
    idle_seconds: float = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages of the call, in order."""
        return (*messages_of_request(self.request), *self.request.added)


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """A model call that made a summary, once it has ended.

    Its prompt was `summary_of` in a log of the length `log_end`, with the messages of `tail` at their indexes.
    """

    request: ExecutionRequest
    epoch: int
    log_end: int
    summary_of: Excerpt
    tail: tuple[TailMessage, ...]
    usage: Usage
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class SentCall:
    """A model call that has started, as observers get it.

    `drifted_at` is the path of the first difference from a call before in the same epoch, or None where there is none.
    """

    call: ModelCall
    new_tokens: int
    drifted_at: str | None


class CallRecorder:
    """Collects the model calls of a turn from its events, and remembers which of them are stored.

    chat_shell counts the calls that answer; each has a number behind those of the summaries that were made before it,
    `summaries` of them by another process. `card` describes the model.
    """

    def __init__(self, start: FirstPrompt, card: ModelCard | None = None, summaries: int = 0) -> None:
        self._start = start
        self._card = card
        self._summaries = summaries
        self._answers = sum(isinstance(message, AssistantMessage) for message in start.request.added)
        self._is_first = True
        self._last = self._sent = start.last
        self._first_result: int | None = None
        self._reading: frozenset[str] = frozenset()
        self._log_length = start.log_length
        self._tools: Measure | None = None
        self._messages: list[Measure] = []
        self._calls: dict[int, ModelCall] = {}
        self._stored: dict[int, ModelCall] = {}
        self._added: set[int] = set()
        self._prompt_tokens: dict[int, int] = {}
        self._idle_seconds: dict[int, float] = {}
        self._header = PromptHeader(tools=_text(start.request), system_prompt=start.request.system_prompt)

    def go_on(self, start: FirstPrompt) -> None:
        """Take later calls from another request of the same turn; its own `last` is not used."""
        self._start = replace(start, last=None, idle_seconds=0)
        self._log_length = start.log_length
        self._tools, self._messages, self._first_result = None, [], None
        self._is_first = True

    def add_summary(self, made: SummaryCall) -> None:
        """Record a call that made a summary; later calls are compared with the newest that answered, as they go on."""
        request, number = made.request, self._answers + self._summaries + 1
        tools, messages = _measure(request), [measure_message(message) for message in messages_of_request(request)]
        reuse = reuse_of(self._last, tools, messages).model_copy(update={"first_difference": None})
        prompt_tokens = tools.tokens + sum(part.tokens for part in messages)
        self._summaries += 1
        self._calls[number] = ModelCall(
            call=number,
            epoch=made.epoch,
            epoch_reason=None,
            log_end=made.log_end,
            header=self._header,
            tail=made.tail,
            reuse=reuse,
            shortfall=shortfall_of(reuse, cause_of_miss(reuse, prompt_tokens, made.usage)),
            usage=made.usage,
            cost=made.cost,
            placement=self._start.placement,
            gauge=self._gauge(prompt_tokens),
            summary_of=made.summary_of,
        )

    def feed(self, event: ExecutionEvent) -> SentCall | CacheMiss | None:
        """Process an event; return the model call where the event starts one, and what of the cache one has missed."""
        if isinstance(event, ModelCallStarted):
            return self._begin(event)
        if isinstance(event, ModelCallFinished):
            return self._end(event)
        if isinstance(event, MessagesAdded):
            self._log_length += len(event.messages)
            if self._tools is not None:
                self._measure_messages(event.messages)
        return None

    def list_changed_calls(self) -> CallsMade:
        """Return the calls of which the newest form is not known to be stored."""
        return self._build_made(tuple(call for number, call in self._calls.items() if self._stored.get(number) != call))

    def list_unstored_calls(self, log_length: int) -> CallsMade:
        """Return the calls that were never stored and whose prompts lie within the first `log_length` entries."""
        made = self._build_made(tuple(call for number, call in self._calls.items() if number not in self._added))
        held = tuple(call for call in made.calls if call.log_end <= log_length)
        return made if held == made.calls else made._replace(calls=held, sent=None)

    def note_added(self, made: CallsMade) -> None:
        """Note that a checkpoint has stored these calls, or has found them stored.

        In which form they are stored nobody knows: a checkpoint changes none, and several may be under way at once.
        """
        self._added.update(call.call for call in made.calls)

    def note_stored(self, made: CallsMade) -> None:
        """Note that these calls have been stored, each in this form."""
        self.note_added(made)
        self._stored.update((call.call, call) for call in made.calls)

    def _build_made(self, calls: tuple[ModelCall, ...]) -> CallsMade:
        return CallsMade(
            conversation_id=self._start.request.conversation_id,
            response_id=self._start.request.turn_id,
            calls=calls,
            sent=self._sent if self._prompt_tokens else None,
        )

    def _measure_messages(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, AssistantMessage) and self._start.keeps_skills:
                self._reading = skill_calls(message)
            if self._first_result is None and _is_whole_result(message, self._reading):
                self._first_result = len(self._messages)
            self._messages.append(measure_message(message))

    def _begin(self, event: ModelCallStarted) -> SentCall:
        number = event.call + self._summaries
        if self._tools is None:
            self._tools = _measure(self._start.request)
            self._measure_messages(self._start.messages)
        request, last = self._start.request, self._last
        if event.reminder_stays:
            self._log_length += 1
            self._measure_messages((UserMessage(content=event.reminder),))
        moving = "" if event.reminder_stays else event.reminder
        tail = with_reminder(self._start.tail, moving, len(self._messages))
        reminders = [measure_message(UserMessage(content=one.text)) for one in tail[len(self._start.tail) :]]
        messages = [*self._messages, *reminders]
        reuse = reuse_of(last, self._tools, messages)
        self._prompt_tokens[number] = self._tools.tokens + sum(part.tokens for part in messages)
        call = ModelCall(
            call=number,
            epoch=request.epoch,
            epoch_reason=self._start.epoch_reason if self._is_first else None,
            log_end=self._log_length,
            header=self._header,
            tail=tail,
            reuse=reuse,
            placement=self._start.placement,
            rewritten_tokens=rewritten_tokens(last, messages, reuse.messages),
            gauge=self._gauge(self._prompt_tokens[number]),
        )
        self._calls[number] = call
        self._idle_seconds[number] = self._start.idle_seconds if self._is_first else 0
        self._is_first = False
        digests = tuple(part.digest for part in messages)
        # Within the turn nothing moves but the reminder; the next turn may move, or leave out, what is behind `fixed`.
        self._last = SentPrompt(
            epoch=request.epoch, tools=self._tools.digest, messages=digests, fixed=len(self._messages)
        )
        self._sent = self._last.model_copy(update={"fixed": self._count_fixed()})
        new_tokens = self._prompt_tokens[number] - reuse.tokens
        return SentCall(call, new_tokens, _find_drift(last, request.epoch, reuse))

    def _end(self, event: ModelCallFinished) -> CacheMiss | None:
        self._answers, number = event.call, event.call + self._summaries
        begun = self._calls.get(number)
        if begun is None:
            return None
        cause = cause_of_miss(begun.reuse, self._prompt_tokens[number], event.usage, self._terms(number, event))
        if begun.epoch_reason == EpochReason.MODEL_CHANGED and begun.reuse.first_difference is None:
            cause = None  # each model has its own cache
        miss = CacheMiss(cause=cause, diagnosis=event.cache_diagnosis)
        ended = {"usage": event.usage, "cost": event.cost, "left_out": event.left_out, "miss": miss}
        self._calls[number] = begun.model_copy(update={**ended, "shortfall": shortfall_of(begun.reuse, cause)})
        return miss if cause is not None else None

    def _terms(self, number: int, event: ModelCallFinished) -> CacheTerms:
        card, idle_seconds = self._card, self._idle_seconds[number]
        minimum_tokens = (card.cache_minimum_tokens if card is not None else 0) or CACHED_FROM_TOKENS
        ttl_seconds = card.cache_ttl_seconds if card is not None else 0
        return CacheTerms(minimum_tokens, ttl_seconds, idle_seconds, event.cache_diagnosis)

    def _gauge(self, prompt_tokens: int) -> Gauge | None:
        card = self._card
        if card is None:
            return None
        return Gauge(
            window_tokens=card.context_window_tokens,
            reserved_tokens=card.max_output_tokens,
            prompt_tokens=prompt_tokens,
        )

    def _count_fixed(self) -> int:
        """Return the number of messages with which the first call of the next turn must begin."""
        ends = [len(self._messages), *(message.index for message in self._start.tail[:1])]
        if self._start.placement == CLASSIC:
            ends.append(_newest_input_at(messages_of_request(self._start.request)))
            ends += [self._first_result] if self._first_result is not None else []
        return min(ends)


def _find_drift(last: SentPrompt | None, epoch: int, reuse: Reuse) -> str | None:
    """Return the path of the first difference from a call of the same epoch; None for a call of another epoch."""
    return reuse.first_difference if last is not None and last.epoch == epoch else None


def _newest_input_at(messages: Sequence[Message]) -> int:
    """Return where the newest messages of the user begin: words of an agent may come to stand there at any time."""
    place = len(messages)
    while place > 0 and messages[place - 1].role in ("assistant", "tool"):
        place -= 1
    while place > 0 and messages[place - 1].role == "user":
        place -= 1
    return place


def _is_whole_result(message: Message, kept: frozenset[str]) -> bool:
    """Say whether a message is a result that the next turn elides; those of the calls `kept` stay."""
    if not isinstance(message, ToolMessage) or message.call_id in kept:
        return False
    return message.content != TOOL_RESULT_ELIDED


def _text(request: ExecutionRequest) -> str:
    is_plain = not (request.tools or request.served_tools or request.reads_files)
    return _own_text(request.knowledge.access_mode) if is_plain else _write(tools_of_request(request))


def _measure(request: ExecutionRequest) -> Measure:
    is_plain = not (request.tools or request.served_tools or request.reads_files)
    return _own_measure(request.knowledge.access_mode) if is_plain else measure_tools(tools_of_request(request))


@cache
def _own_text(mode: AccessMode) -> str:
    """Return the tools of a turn without functions of the client, which are constants."""
    return _write(list_offered_tools((), mode))


@cache
def _own_measure(mode: AccessMode) -> Measure:
    return measure_tools(list_offered_tools((), mode))


def _write(tools: Sequence[ToolDefinition]) -> str:
    return orjson.dumps(tools_json(tools)).decode() if tools else ""
