"""Resolving and checking a turn, and building what is stored of it before it runs."""

from collections.abc import Awaitable, Callable
from functools import partial

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.queued_request import QueuedRequest
from backend.turns.domain.turn import StartableTurn
from backend.turns.services.turn_assembly import assembled
from backend.turns.services.turn_drafting import AskedTurn, TurnDrafting


class PrepareTurn:
    """Implements `TurnPreparation` over the drafting of turns; it stores nothing."""

    def __init__(self, drafting: TurnDrafting) -> None:
        self._drafting = drafting

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> StartableTurn:
        """Prepare a turn that is asked for now."""
        return await self._prepared(await self._drafting.asked(caller, request), request_id)

    async def again(self, later: QueuedRequest, waited: StoredResponse) -> StartableTurn:
        """Prepare a turn whose response has waited, with the rights that its caller has today."""
        return await self._prepared(await self._drafting.asked_again(later, waited), later.request_id)

    async def _prepared(self, asked: AskedTurn, request_id: str) -> StartableTurn:
        start = await self._drafting.start(asked)
        draft = await self._drafting.draft(asked, start, request_id)
        turn, rows = await run_in_thread_if_large(start.size, lambda: assembled(draft))
        branch: Callable[[], Awaitable[StartableTurn]] = partial(self._prepared, asked, request_id)
        # Who resends a history names no conversation: where another turn was faster, this one branches off.
        return StartableTurn(turn, rows, branch if start.is_recognised else None)
