"""The state of a turn, and the rules for its next step.

This module is pure: `decide` returns the next step, the service carries it out, and `record` returns the state
after its result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chat_shell.tools.domain.tool_calls import call_ids, with_decoded_arguments, with_distinct_ids
from shared.errors import BallastError, ModelProtocolViolated
from shared.models.events import Cost, FinishReason, Usage, add_usage
from shared.models.execution import ToolChoice
from shared.models.messages import AssistantMessage, Message, ProviderReasoning, ToolCall, ToolMessage, TurnMessage
from shared.tokens import message_tokens

NOTHING_REPORTED = Usage()

MAX_DEMANDS = 3
"""The number of model calls that demand a function of the client; later calls leave the choice to the model."""

MAX_CALLS_IN_ANSWER = 128
"""Calls of one answer that count; a model that goes on was meant to end its answer long before."""
TOO_MANY_CALLS = f"tool calls behind the first {MAX_CALLS_IN_ANSWER} of an answer"
DROPPED_CALLS = "tool calls of an answer that may have none, or that was cut off"

_ENDED_EARLY = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn between two steps.

    `prompt` is what the first request carries, `added` what the turn has put behind it. While tools run,
    `answer` holds the assistant message that called them: message and results are added together or not
    at all, so that no call ever stands without its result. `usage` is the sum over the model calls,
    `last_usage` that of the latest. `demands_function` says that only the client's functions satisfy
    `tool_choice`. `prompt_tokens` is the size of the next request: the provider's count of the one before, where there
    is one, and an estimate of the results since; None before the first results of this execution.
    """

    prompt: tuple[Message, ...]
    client_functions: frozenset[str]
    tool_choice: ToolChoice
    max_model_calls: int
    demands_function: bool = False
    hand_back_tokens: int | None = None
    prompt_tokens: int | None = None
    model_calls: int = 0
    added: tuple[TurnMessage, ...] = ()
    answer: AssistantMessage | None = None
    outcome: FinishReason | BallastError | None = None
    usage: Usage = NOTHING_REPORTED
    last_usage: Usage = NOTHING_REPORTED

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that the next request carries."""
        return (*self.prompt, *self.added)


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model; `number` counts from 1."""

    number: int
    messages: tuple[Message, ...]
    tool_choice: ToolChoice


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run our own calls side by side; hand the client's to the client."""

    own: tuple[ToolCall, ...]
    client: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class YieldForCompaction:
    """Stop before a model call, whose prompt would have so many tokens; the backend lets the turn go on."""

    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn is over, well or not."""

    outcome: FinishReason | BallastError


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """A model call has ended; a refusal's words count as text."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage
    reasoning: ProviderReasoning | None = None
    cost: Cost | None = None
    left_out: tuple[str, ...] = ()
    cache_diagnosis: str = ""


@dataclass(frozen=True, slots=True)
class ToolsAnswered:
    """Our own tools have all ended; results stand in call order."""

    results: tuple[ToolMessage, ...]


Step = CallModel | RunTools | YieldForCompaction | Finish
Observation = ModelAnswered | ToolsAnswered


def decide(state: TurnState) -> Step:
    """Name the next step."""
    if state.outcome is not None:
        return Finish(state.outcome)
    if state.answer is not None:
        calls = state.answer.tool_calls
        return RunTools(
            own=tuple(call for call in calls if call.name not in state.client_functions),
            client=tuple(call for call in calls if call.name in state.client_functions),
        )
    if _is_too_long(state.prompt_tokens, state.hand_back_tokens):
        return YieldForCompaction(state.prompt_tokens or 0)
    number = state.model_calls + 1
    return CallModel(number, state.messages, _tool_choice(state, number))


def record(state: TurnState, observation: Observation) -> TurnState:
    """Return the state after the result of a step."""
    if isinstance(observation, ModelAnswered):
        return _record_answer(state, observation)
    return _record_results(state, observation)


def list_left_out(state: TurnState, answer: ModelAnswered) -> tuple[str, ...]:
    """Say what of an answer the state behind it does not hold."""
    if answer.tool_calls and state.answer is None:
        return (*answer.left_out, DROPPED_CALLS)
    return (*answer.left_out, TOO_MANY_CALLS) if len(answer.tool_calls) > MAX_CALLS_IN_ANSWER else answer.left_out


def count_used_tokens(messages: Iterable[Message], answer: AssistantMessage, usage: Usage) -> int:
    """Count what the prompt holds once the answer is in it: as the provider reports it, else estimated.

    Some servers report 0 where they have not counted.
    """
    if not usage.input_tokens:
        return sum(message_tokens(message) for message in messages) + message_tokens(answer)
    output_tokens = message_tokens(answer) if usage.output_tokens is None else usage.output_tokens
    return usage.input_tokens + output_tokens


def _is_too_long(prompt_tokens: int | None, limit_tokens: int | None) -> bool:
    return prompt_tokens is not None and limit_tokens is not None and prompt_tokens >= limit_tokens


def _tool_choice(state: TurnState, number: int) -> ToolChoice:
    """Return the tool choice of a model call: the last call may use no tool, so that the model must answer.

    A demand for any tool is satisfied by the first call. A demand for a function of the client is repeated in later
    calls, because a call of such a function would have ended the turn.
    """
    if number >= state.max_model_calls or state.tool_choice == "none":
        return "none"
    return state.tool_choice if number <= (MAX_DEMANDS if state.demands_function else 1) else "auto"


def _record_answer(state: TurnState, answer: ModelAnswered) -> TurnState:
    number = state.model_calls + 1
    state = replace(state, model_calls=number, usage=add_usage(state.usage, answer.usage), last_usage=answer.usage)
    if answer.tool_calls and _tool_choice(state, number) != "none" and answer.finish_reason not in _ENDED_EARLY:
        return replace(state, answer=_build_calling(answer, number, call_ids(state.added)))
    return _record_end(state, answer)


def _build_calling(answer: ModelAnswered, number: int, taken_ids: set[str]) -> AssistantMessage:
    """Return the message of an answer that calls tools."""
    decoded = tuple(map(with_decoded_arguments, answer.tool_calls[:MAX_CALLS_IN_ANSWER]))
    reasoning = answer.reasoning if len(decoded) == len(answer.tool_calls) else None
    calls = with_distinct_ids(decoded, number, taken_ids)
    return AssistantMessage(text=answer.text, tool_calls=calls, reasoning=reasoning)


def _record_end(state: TurnState, answer: ModelAnswered) -> TurnState:
    """End the turn; tool calls that were cut off or not allowed are dropped, because they will get no result."""
    reason = FinishReason.STOP if answer.finish_reason is FinishReason.TOOL_CALLS else answer.finish_reason
    if answer.text:
        reasoning = None if answer.tool_calls else answer.reasoning  # it tells its places among the calls, too
        said = AssistantMessage(text=answer.text, reasoning=reasoning)
        return replace(state, added=(*state.added, said), outcome=reason)
    if reason in _ENDED_EARLY:
        return replace(state, outcome=reason)
    return replace(state, outcome=ModelProtocolViolated(f"the model {_problem(state, answer)}"))


def _problem(state: TurnState, answer: ModelAnswered) -> str:
    """Say what is wrong with an answer without text."""
    if not answer.tool_calls:
        return "gave an empty answer"
    if state.model_calls < state.max_model_calls or state.tool_choice == "none":
        return "only called functions, which it may not here"
    return f"went on to call functions in the last of the {state.max_model_calls} model calls of a turn"


def _record_results(state: TurnState, observation: ToolsAnswered) -> TurnState:
    if state.answer is None:
        raise ValueError("no tool call waits for a result")
    waits_for_client = any(call.name in state.client_functions for call in state.answer.tool_calls)
    sent_tokens = count_used_tokens(state.messages, state.answer, state.last_usage)
    return replace(
        state,
        added=(*state.added, state.answer, *observation.results),
        prompt_tokens=sent_tokens + sum(map(message_tokens, observation.results)),
        answer=None,
        outcome=FinishReason.TOOL_CALLS if waits_for_client else None,
    )
