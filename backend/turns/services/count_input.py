"""Counting the tokens that a turn would send, without running it."""

from backend.conversations.domain.compaction import TOOLS_TOKENS
from backend.foundation.services.steps import beside_others
from backend.identity.domain import Caller
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.services.turn_assembly import TurnDraft, assembled
from backend.turns.services.turn_drafting import TurnDrafting
from shared.models.canonical import canonical_parts
from shared.prompts.message_order import messages_of_request
from shared.tokens import estimate_tokens, message_tokens


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
        return await beside_others(start.size, lambda: _prompt_tokens(draft))


def _prompt_tokens(draft: TurnDraft) -> int:
    turn, _ = assembled(draft)
    functions = canonical_parts(turn.request.tools, ())[0].decode()
    return TOOLS_TOKENS + estimate_tokens(functions) + sum(map(message_tokens, messages_of_request(turn.request)))
