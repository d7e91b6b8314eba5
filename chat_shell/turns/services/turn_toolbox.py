"""The toolbox as one turn uses it: with the numbers of its documents, and what it may still spend on knowledge."""

from collections.abc import Collection, Mapping, Sequence

from chat_shell.knowledge.domain.citations import CitedDocument
from chat_shell.knowledge.domain.documents import numbers_in
from chat_shell.tools.domain.written_calls import has_written_call
from chat_shell.tools.ports.tools import ToolContext
from chat_shell.turns.domain.limits import KnowledgeAllowance, knowledge_calls_in, result_tokens
from chat_shell.turns.domain.repetition import EarlierCalls
from chat_shell.turns.domain.turn import CallModel, RunTools, ToolsAnswered, TurnState, count_used_tokens
from chat_shell.turns.ports import Emit
from chat_shell.turns.services.answer_text import ReadText
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.tool_round import (
    ToolRoundEvent,
    announce_searches,
    announce_served_calls,
    finish_round,
    hide,
    refuse_repeated,
)
from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import AccessMode, ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, Message


class TurnToolbox:
    """Implements `TurnTools`; no result has more than `most_result_tokens`."""

    def __init__(
        self,
        toolbox: Toolbox,
        most_result_tokens: int,
        request: ExecutionRequest,
        card: ModelCard,
        prompt: Sequence[Message],
    ) -> None:
        self._toolbox = toolbox
        self._request = request
        self._context = ToolContext(request=request, card=card, result_tokens=result_tokens(card, most_result_tokens))
        self._is_full = request.knowledge.access_mode is AccessMode.FULL
        numbers = numbers_in(prompt)
        self._numbers = (numbers if self._is_full else numbers.without_documents()).join(numbers_in(request.added))
        self._calls_left = max(0, request.limits.max_knowledge_calls - knowledge_calls_in(request.added))
        self.offered = toolbox.offer(request)

    def answer_text(self, state: TurnState, step: CallModel) -> ReadText:
        """Begin to read the text of the answer to a model call."""
        return ReadText(self._citable(), self._callable(state, step))

    async def run(self, state: TurnState, step: RunTools, emit: Emit) -> ToolsAnswered:
        """Run our own calls; those that the turn has made again and again are refused."""
        calls, allowance = self._toolbox.admit(step.own, self._context, self._allowance(state))
        calls = refuse_repeated(calls, EarlierCalls(state.added))
        for search in announce_searches(calls):
            await emit(search)
        for started in announce_served_calls(calls):
            await emit(self._show(started))
        answers = await self._toolbox.run(calls, self._context)
        ended = finish_round(calls, answers, self._numbers, allowance, self._context.result_tokens)
        for event in ended.ended:
            await emit(self._show(event))
        self._numbers, self._calls_left = ended.numbers, ended.allowance.calls_left
        return ToolsAnswered(ended.messages)

    def _show(self, event: ToolRoundEvent) -> ExecutionEvent:
        return event if self._is_full else hide(event)

    def _citable(self) -> Mapping[int, CitedDocument] | None:
        """Return the documents that an answer may cite; None where its text stays as it is.

        That is so of summaries, and of JSON that the client has asked for: its lists of numbers are no citations.
        """
        text_format = self._request.parameters.text_format
        is_json = text_format is not None and text_format.get("type") != "text"
        return None if is_json or self._request.purpose is Purpose.SUMMARY else self._numbers.documents

    def _callable(self, state: TurnState, step: CallModel) -> Collection[str]:
        """Return the tools of which an answer may be calls in the form of text, which is read so once a turn."""
        if step.tool_choice == "none" or has_written_call(state.added):
            return ()
        return frozenset(tool.name for tool in self.offered)

    def _allowance(self, state: TurnState) -> KnowledgeAllowance:
        answer = state.answer or AssistantMessage(text="")
        return KnowledgeAllowance(
            calls_left=self._calls_left,
            budget_tokens=self._context.card.input_budget_tokens,
            used_tokens=count_used_tokens(state.messages, answer, state.last_usage),
        )
