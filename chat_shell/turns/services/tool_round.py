"""Render the answers of one round of tool calls.

Rendering is separate from running, because document numbers and the prompt's token budget are assigned in the order
of the calls, whichever tool ends first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chat_shell.knowledge.domain.documents import DocumentNumbers
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.turns.domain.document_cap import documents_within
from chat_shell.turns.domain.limits import KnowledgeAllowance
from chat_shell.turns.domain.repetition import EarlierCalls
from chat_shell.turns.services.run_tools import AdmittedCall
from shared.models.events import SearchFinished, SearchResult, SearchStarted, ServedCallFinished, ServedCallStarted
from shared.models.messages import ToolMessage
from shared.prompts import knowledge_base as texts
from shared.prompts import tool_results
from shared.prompts.message_order import join_blocks
from shared.prompts.tool_results import within_tokens
from shared.prompts.tool_servers import NO_ROOM

ToolRoundEvent = ServedCallStarted | SearchFinished | ServedCallFinished
"""An event of a tool call that a restricted turn reports without its texts."""


@dataclass(frozen=True, slots=True)
class ToolRound:
    """The results of one round of tool calls: messages for the model, and the events of calls that clients see."""

    messages: tuple[ToolMessage, ...]
    ended: tuple[SearchFinished | ServedCallFinished, ...]
    numbers: DocumentNumbers
    allowance: KnowledgeAllowance


def refuse_repeated(calls: Sequence[AdmittedCall], earlier: EarlierCalls) -> tuple[AdmittedCall, ...]:
    """Refuse calls that the turn has made again and again."""
    return tuple(
        replace(one, tool=None, refusal=tool_results.CALL_REPEATED)
        if one.tool and earlier.is_exhausted(one.call)
        else one
        for one in calls
    )


def announce_searches(calls: Sequence[AdmittedCall]) -> tuple[SearchStarted, ...]:
    """Announce the knowledge searches among the calls."""
    return tuple(
        SearchStarted(call_id=one.call.call_id, queries=(one.search_query,))
        for one in calls
        if one.search_query is not None
    )


def announce_served_calls(calls: Sequence[AdmittedCall]) -> tuple[ServedCallStarted, ...]:
    """Announce the calls of tools of tool servers."""
    return tuple(
        ServedCallStarted(
            call_id=one.call.call_id, server=one.served.server, tool=one.served.tool, arguments=one.call.arguments
        )
        for one in calls
        if one.served is not None
    )


def hide(event: ToolRoundEvent) -> ToolRoundEvent:
    """Return an event as a restricted turn reports it: nothing of it is scanned before clients get it."""
    match event:
        case ServedCallStarted():
            return event.model_copy(update={"arguments": "{}"})
        case ServedCallFinished():
            return event.model_copy(update={"output": ""})
        case SearchFinished():
            return event.model_copy(update={"results": ()})


def finish_round(
    calls: Sequence[AdmittedCall],
    answers: Sequence[ToolAnswer],
    numbers: DocumentNumbers,
    allowance: KnowledgeAllowance,
    result_tokens: int,
) -> ToolRound:
    """Render answers in call order: number their documents, charge the token budget, and warn near its end.

    Of a result longer than `result_tokens` a part is left out, for good: the log keeps what the model was shown.
    Documents that no longer fit into the budget are withheld as a whole.
    """
    messages: list[ToolMessage] = []
    ended: list[SearchFinished | ServedCallFinished] = []
    for one, answer in zip(calls, answers, strict=True):
        rendered = _render(answer, numbers, result_tokens)
        if answer.documents and one.reads_knowledge and not allowance.has_room_for(rendered.text):
            rendered = _Rendered(texts.BUDGET_EXHAUSTED, (), numbers, failed=True)
        elif answer.documents and one.reads_knowledge:
            rendered = replace(rendered, text=allowance.with_warning(rendered.text))
        elif one.served is not None and not allowance.has_room_for(rendered.text):
            rendered = _Rendered(NO_ROOM, (), numbers, failed=True)
        numbers = rendered.numbers
        allowance = allowance.after_text(rendered.text)
        messages.append(ToolMessage(call_id=one.call.call_id, content=rendered.text))
        if one.search_query is not None:
            ended.append(SearchFinished(call_id=one.call.call_id, failed=rendered.failed, results=rendered.results))
        if one.served is not None:
            ended.append(ServedCallFinished(call_id=one.call.call_id, output=rendered.text, failed=rendered.failed))
    return ToolRound(tuple(messages), tuple(ended), numbers, allowance)


@dataclass(frozen=True, slots=True)
class _Rendered:
    text: str
    results: tuple[SearchResult, ...]
    numbers: DocumentNumbers
    failed: bool


def _render(answer: ToolAnswer, numbers: DocumentNumbers, result_tokens: int) -> _Rendered:
    if not answer.documents:
        return _Rendered(within_tokens(answer.text, result_tokens), (), numbers, answer.failed)
    shown, notice = documents_within(answer.documents, result_tokens)
    numbered, numbers = numbers.number(shown)
    return _Rendered(join_blocks((numbered.text, notice)), numbered.results, numbers, answer.failed)
