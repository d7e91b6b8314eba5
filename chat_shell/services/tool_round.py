"""The answers of one round of tool calls, rendered in call order.

Running and rendering are apart, because document numbers and the prompt's budget are given out in call
order, whichever tool ends first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chat_shell.domain.documents import DocumentNumbers
from chat_shell.domain.limits import KnowledgeAllowance
from chat_shell.ports import ToolAnswer
from chat_shell.services.toolbox import AdmittedCall
from shared.models.events import SearchFinished, SearchResult, SearchStarted
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import ToolMessage
from shared.prompts import knowledge_base as texts


@dataclass(frozen=True, slots=True)
class ToolRound:
    """What the calls of one answer came to: results for the model, events for who watches."""

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
    request: ExecutionRequest,
) -> ToolRound:
    """Render answers in call order: number their documents, charge them, warn near the budget's end.

    A knowledge result for which the ones before it left no room is withheld whole: nothing is cut.
    """
    messages: list[ToolMessage] = []
    searches: list[SearchFinished] = []
    for one, answer in zip(calls, answers, strict=True):
        is_knowledge = one.reads_knowledge
        if is_knowledge and answer.documents and allowance.exhausted:
            answer = ToolAnswer(text=texts.BUDGET_EXHAUSTED, failed=True)
        text, results, numbers = _render(answer, numbers)
        if is_knowledge and request.knowledge.access_mode is AccessMode.FULL:
            text = allowance.with_warning(text)
        allowance = allowance.after_text(text)
        messages.append(ToolMessage(call_id=one.call.call_id, content=text))
        if one.search_query is not None:
            searches.append(SearchFinished(call_id=one.call.call_id, failed=answer.failed, results=results))
    return ToolRound(tuple(messages), tuple(searches), numbers, allowance)


def _render(answer: ToolAnswer, numbers: DocumentNumbers) -> tuple[str, tuple[SearchResult, ...], DocumentNumbers]:
    if not answer.documents:
        return answer.text, (), numbers
    numbered, numbers = numbers.number(answer.documents)
    return numbered.text, numbered.results, numbers
