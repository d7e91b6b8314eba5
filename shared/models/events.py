"""The events that chat_shell reports while a turn runs.

The order of a turn is (`ModelCallStarted`, deltas, `ModelCallFinished`, tool events, `MessagesAdded`)+, then exactly
one `TurnEnd`. A cancelled turn has none, as its caller knows that it cancelled.
"""

from enum import StrEnum
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from shared.models.messages import AddedMessage, is_none
from shared.models.values import AttributeValue, Place, Value

REMINDERS_HEADER = "ballast-reminders"
"""Sent over HTTP by a backend that knows `ModelCallStarted.reminder`: one of the release before refuses the field."""

REMINDERS_STAY = "stay"
"""The value of that header where the turn keeps its reminders; in the request the release before would refuse it."""

NEWER_EVENTS_HEADER = "ballast-events"
"""Sent by a backend that knows `FunctionCallDelta`, and `ModelCallFinished.left_out` over HTTP.

One of the release before ends a turn in which an event of a new kind comes, and over HTTP at a new field, too.
"""


NEWER_EVENTS = "2"
"""The value of that header by a backend that knows `ModelCallFinished.cache_diagnosis` and places of passages, too."""

CACHE_CHANGES = frozenset(
    {
        "model_changed",
        "system_changed",
        "tools_changed",
        "messages_changed",
        "input_changed",
        "context_compacted",
        "prompt_cache_key_changed",
        "text_format_changed",
        "reasoning_effort_changed",
        "verbosity_changed",
        "service_tier_changed",
    }
)
"""What a provider finds otherwise than in the request before, in its own words."""
CACHE_DIAGNOSES = CACHE_CHANGES | {
    "unchanged",
    "pending",
    "cache_hit",
    "previous_message_not_found",
    "comparison_response_not_found",
    "unavailable",
    "other",
}
"""All that a provider says of a miss of its cache; `unchanged` and `pending` stand for a null of Anthropic's API."""


class FinishReason(StrEnum):
    """Why a model call or a turn ended."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"


class Usage(Value):
    """Numbers of tokens as the provider reported them; None means that the number is unknown."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


def add_usage(total: Usage, call: Usage) -> Usage:
    """Add up what is known; a figure that no call reported stays unknown."""
    return Usage(**{name: _sum(known, getattr(call, name)) for name, known in vars(total).items()})


def _sum(total: int | None, more: int | None) -> int | None:
    if total is None or more is None:
        return more if total is None else total
    return total + more


class Cost(Value):
    """What a model call cost at the operator's prices, and what it would have cost more without the provider's cache.

    Both are in units of `currency`, such as USD.
    """

    currency: str
    amount: float
    saved: float


class ErrorReport(Value):
    """A failure as it may be shown: it never contains a credential, an address or text of a document.

    `type` is the name of the class in shared/errors.py, `code` one of OpenAI's error codes.
    """

    type: str
    code: str
    message: str
    param: str | None
    retryable: bool


class SearchResult(Value):
    """One passage that a search in an unrestricted turn found; citations refer to its `number`.

    `attributes` are those of its document, `other_names` those of documents with the same bytes; the release before
    knows none of these, nor a place.
    """

    number: int
    file_id: str
    filename: str
    score: float
    text: str
    # Left out where there are none, because the release before refuses a field that it does not know.
    attributes: dict[str, AttributeValue] = Field(default={}, exclude_if=not_)
    place: Place | None = Field(default=None, exclude_if=is_none)
    other_names: tuple[str, ...] = Field(default=(), exclude_if=not_)


class ModelCallStarted(Value):
    """The request of model call `call` (counted from 1) is about to be sent.

    `reminder` is the text of its last message where that is a reminder; "" where it is not. One that `reminder_stays`
    is a message of the log, which later requests send where it stands; any other stands in none.
    """

    type: Literal["model_call_started"] = "model_call_started"
    call: int
    # Left out where they are empty, because the release before refuses a field that it does not know.
    reminder: str = Field(default="", exclude_if=not_)
    reminder_stays: bool = Field(default=False, exclude_if=not_)


class TextDelta(Value):
    """More text of the answer, with citation markers in the form `[n]`; the text of several frames may be joined."""

    type: Literal["text_delta"] = "text_delta"
    text: str


class TextLogprobs(Value):
    """The log probabilities of tokens of the answer, whose text follows where it does not stand in the last delta.

    `tokens` is a JSON list with `token`, `logprob`, `bytes` and `top_logprobs` of each. They come only where they
    were asked for.
    """

    type: Literal["text_logprobs"] = "text_logprobs"
    tokens: str


class ReasoningDelta(Value):
    """More of the reasoning that a reasoning model shows."""

    type: Literal["reasoning_delta"] = "reasoning_delta"
    text: str


class RefusalDelta(Value):
    """More of a text that the provider marks as a refusal."""

    type: Literal["refusal_delta"] = "refusal_delta"
    text: str


class CitationAdded(Value):
    """A citation `[n]` in the text of this model call; `index` is its position in that text, in characters.

    `place` is where in its file the cited passage stands, where that is known; `other_names` are those of documents
    with the same bytes.
    """

    type: Literal["citation_added"] = "citation_added"
    number: int
    file_id: str
    filename: str
    index: int
    place: Place | None = Field(default=None, exclude_if=is_none)
    other_names: tuple[str, ...] = Field(default=(), exclude_if=not_)


class ModelCallFinished(Value):
    """Model call `call` has ended; `usage` and `cost` are those of this call alone.

    `cost` is None where the operator has given no prices, or the provider no numbers of tokens. `left_out` says in
    words what the answer held that no value can hold, or more of than counts. `cache_diagnosis` is one of
    `CACHE_DIAGNOSES`, "" where the provider was not asked or says nothing.
    """

    type: Literal["model_call_finished"] = "model_call_finished"
    call: int
    finish_reason: FinishReason
    usage: Usage
    cost: Cost | None = Field(default=None, exclude_if=is_none)
    left_out: tuple[str, ...] = Field(default=(), exclude_if=not_)
    cache_diagnosis: str = Field(default="", exclude_if=not_)


class SearchStarted(Value):
    """A knowledge search has started."""

    type: Literal["search_started"] = "search_started"
    call_id: str
    queries: tuple[str, ...]


class SearchFinished(Value):
    """A knowledge search has ended; `results` is empty in a restricted turn."""

    type: Literal["search_finished"] = "search_finished"
    call_id: str
    failed: bool
    results: tuple[SearchResult, ...]


class ServedCallStarted(Value):
    """A call of a tool of a tool server has started.

    `arguments` is the JSON text as the model wrote it; "{}" in a restricted turn.
    """

    type: Literal["served_call_started"] = "served_call_started"
    call_id: str
    server: str
    tool: str
    arguments: str


class ServedCallFinished(Value):
    """A call of a tool of a tool server has ended; `output` is what the model reads, empty in a restricted turn."""

    type: Literal["served_call_finished"] = "served_call_finished"
    call_id: str
    output: str
    failed: bool


class FunctionCallDelta(Value):
    """More of the arguments of a call of a client's function, as the model writes it.

    `FunctionCallRequested` follows with the whole call, unless the answer is cut off.
    """

    type: Literal["function_call_delta"] = "function_call_delta"
    call_id: str
    name: str
    arguments: str


class FunctionCallRequested(Value):
    """The model calls a function of the client; the turn ends after this model call."""

    type: Literal["function_call_requested"] = "function_call_requested"
    call_id: str
    name: str
    arguments: str


class MessagesAdded(Value):
    """Messages to append to the log: an assistant message, and all results of its calls that are known."""

    type: Literal["messages_added"] = "messages_added"
    messages: tuple[AddedMessage, ...]


class TurnFinished(Value):
    """The turn has ended; `usage` is the sum over its model calls."""

    type: Literal["turn_finished"] = "turn_finished"
    finish_reason: FinishReason
    usage: Usage


class TurnHandedBack(Value):
    """The turn stops before its next model call, because its prompt has reached the limit that the request names.

    The backend shortens the history and lets the turn go on with a further request. `usage` is the sum over the model
    calls so far, `prompt_tokens` the size of the prompt that was not sent.
    """

    type: Literal["turn_handed_back"] = "turn_handed_back"
    prompt_tokens: int
    usage: Usage


class TurnFailed(Value):
    """The turn has failed; the events before stay valid."""

    type: Literal["turn_failed"] = "turn_failed"
    error: ErrorReport
    usage: Usage


TurnEnd = TurnFinished | TurnHandedBack | TurnFailed
"""The last event of an execution."""

ExecutionEvent = Annotated[
    ModelCallStarted
    | TextDelta
    | TextLogprobs
    | ReasoningDelta
    | RefusalDelta
    | CitationAdded
    | ModelCallFinished
    | SearchStarted
    | SearchFinished
    | ServedCallStarted
    | ServedCallFinished
    | FunctionCallDelta
    | FunctionCallRequested
    | MessagesAdded
    | TurnFinished
    | TurnHandedBack
    | TurnFailed,
    Field(discriminator="type"),
]


MARGIN_PERCENT = 5
"""Percent of a model's window, kept free because tokens are estimated."""


class CacheRule(Value):
    """How the cache of a model's provider works.

    A prefix of less than `minimum_tokens` is not kept, nor one unused for longer than `ttl_seconds`. A token costs
    `write_factor` times what it costs uncached where it is written, `read_factor` times where it is read.
    """

    kind: str
    minimum_tokens: int
    write_factor: float
    read_factor: float
    ttl_seconds: int = 300


class ModelCard(Value):
    """A model that chat_shell offers; `extra_parameters` are what it takes beside the fields of `ModelParameters`.

    The two of its cache are those of its `CacheRule`, 0 where they are not known. Between turns a conversation is
    shortened where it has more than `compact_from_tokens`; 0 where its window alone says so.
    """

    name: str
    context_window_tokens: int
    max_output_tokens: int
    extra_parameters: tuple[str, ...] = ()
    cache_minimum_tokens: int = 0
    cache_ttl_seconds: int = 0
    compact_from_tokens: int = 0

    @property
    def input_budget_tokens(self) -> int:
        """Tokens that a request to this model may carry."""
        return self.room_beside(self.max_output_tokens)

    def room_beside(self, answer_tokens: int) -> int:
        """Return the tokens that a request may carry where so many are kept for its answer."""
        margin = self.context_window_tokens * MARGIN_PERCENT // 100
        return max(0, self.context_window_tokens - margin - answer_tokens)
