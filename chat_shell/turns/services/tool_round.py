"""Render the answers of one round of tool calls.

Rendering is separate from running, because document numbers and the prompt's token budget are assigned in the order
of the calls, whichever tool ends first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chat_shell.knowledge.domain.documents import DocumentNumbers
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.turns.domain.limits import KnowledgeAllowance
from chat_shell.turns.services.run_tools import AdmittedCall
from shared.models.events import SearchFinished, SearchResult, SearchStarted
from shared.models.messages import ToolMessage
from shared.prompts import knowledge_base as texts


@dataclass(frozen=True, slots=True)
class ToolRound:
    """The results of one round of tool calls: messages for the model and search events."""

    messages: tuple[ToolMessage, ...]
    searches: tuple[SearchFinished, ...]
    numbers: DocumentNumbers
    allowance: KnowledgeAllowance


def searches_started(calls: Sequence[AdmittedCall]) -> tuple[SearchStarted, ...]:
    """Announce the knowledge searches among the calls."""
    return tuple(
        SearchStarted(call_id=one.call.call_id, queries=(one.search_query,))
        for one in calls
        if one.search_query is not None
    )


def finish_round(
    calls: Sequence[AdmittedCall],
    answers: Sequence[ToolAnswer],
    numbers: DocumentNumbers,
    allowance: KnowledgeAllowance,
) -> ToolRound:
    """Render answers in call order: number their documents, charge the token budget, and warn near its end.

    Documents that no longer fit into the budget are withheld as a whole; no text is cut.
    """
    messages: list[ToolMessage] = []
    searches: list[SearchFinished] = []
    for one, answer in zip(calls, answers, strict=True):
        rendered = _render(answer, numbers)
        if answer.documents and one.reads_knowledge and not allowance.has_room_for(rendered.text):
            rendered = _Rendered(texts.BUDGET_EXHAUSTED, (), numbers, failed=True)
        elif answer.documents and one.reads_knowledge:
            rendered = replace(rendered, text=allowance.with_warning(rendered.text))
        numbers = rendered.numbers
        allowance = allowance.after_text(rendered.text)
        messages.append(ToolMessage(call_id=one.call.call_id, content=rendered.text))
        if one.search_query is not None:
            searches.append(SearchFinished(call_id=one.call.call_id, failed=rendered.failed, results=rendered.results))
    return ToolRound(tuple(messages), tuple(searches), numbers, allowance)


@dataclass(frozen=True, slots=True)
class _Rendered:
    text: str
    results: tuple[SearchResult, ...]
    numbers: DocumentNumbers
    failed: bool


def _render(answer: ToolAnswer, numbers: DocumentNumbers) -> _Rendered:
    if not answer.documents:
        return _Rendered(answer.text, (), numbers, answer.failed)
    numbered, numbers = numbers.number(answer.documents)
    return _Rendered(numbered.text, numbered.results, numbers, answer.failed)
