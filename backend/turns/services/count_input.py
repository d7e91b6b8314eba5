"""Counting the tokens that a turn would send, without running it."""

from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.compaction import tools_tokens
from backend.turns.ports.preparation import TurnPreparation
from shared.models.execution import ExecutionRequest
from shared.prompts.knowledge_tools import functions_of_request
from shared.prompts.message_order import messages_of_request
from shared.tokens import message_tokens


class CountInput:
    """Counts the first prompt of turns; nothing is stored or sent."""

    def __init__(self, prepare: TurnPreparation) -> None:
        self._prepare = prepare

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> int:
        """Return an estimate of the tokens of the system message, history, context, input and tools of a turn.

        Raises:
            BallastError: the turn could not begin, for whatever reason `StartTurn` names.
        """
        turn = (await self._prepare(caller, request, request_id)).turn
        return await run_in_thread_if_large(len(turn.log), lambda: _prompt_tokens(turn.request))


def _prompt_tokens(request: ExecutionRequest) -> int:
    return tools_tokens(functions_of_request(request)) + sum(map(message_tokens, messages_of_request(request)))
