"""Counting the tokens that a turn would send, without running it."""

from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.compaction import tools_tokens
from backend.turns.services.turn_assembly import assembled
from backend.turns.services.turn_draft import TurnDraft
from backend.turns.services.turn_drafting import TurnDrafting
from shared.prompts.knowledge_tools import functions_of_request
from shared.prompts.message_order import messages_of_request
from shared.tokens import message_tokens


class CountInput:
    """Counts the first prompt of turns; nothing is stored or sent."""

    def __init__(self, drafting: TurnDrafting) -> None:
        self._drafting = drafting

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> int:
        """Return an estimate of the tokens of the system message, history, context, input and tools of a turn.

        Raises:
            BallastError: the turn could not begin, for whatever reason `StartTurn` names.
        """
        asked = await self._drafting.asked(caller, request)
        start = await self._drafting.start(asked)
        draft = await self._drafting.draft(asked, start, request_id)
        return await run_in_thread_if_large(start.size, lambda: _prompt_tokens(draft))


def _prompt_tokens(draft: TurnDraft) -> int:
    turn, _ = assembled(draft)
    tools = tools_tokens(functions_of_request(turn.request))
    return tools + sum(map(message_tokens, messages_of_request(turn.request)))
