"""Resolving and checking a turn, and building what is stored of it before it runs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from backend.conversations.domain.responses import NewTurn, StoredResponse
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.queued_request import QueuedRequest
from backend.turns.domain.turn import StartableTurn, Turn
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.origin_reader import OriginReader
from backend.turns.services.request.request_reader import RequestReader
from backend.turns.services.turn_assembly import assemble
from backend.turns.services.turn_draft import AskedTurn
from backend.turns.services.turn_drafting import TurnDrafting


@dataclass(frozen=True)
class PrepareTurn:
    """Implements `TurnPreparation`; it stores nothing. Turns of several models take its steps one by one."""

    requests: RequestReader
    origins: OriginReader
    drafting: TurnDrafting

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> StartableTurn:
        """Prepare a turn that is asked for now."""
        return await self._prepare(await self.requests.read(caller, request), request_id)

    async def again(self, later: QueuedRequest, waited: StoredResponse) -> StartableTurn:
        """Prepare a turn whose response has waited, with the rights that its caller has today."""
        return await self._prepare(await self.requests.read_again(later, waited), later.request_id)

    async def start(self, asked: AskedTurn) -> TurnStart:
        """Return where a turn begins.

        Raises:
            InvalidRequest: the input is not valid there; `param` names the place.
            NotFound: the conversation or the response does not exist for this caller.
            TurnRunning: a turn holds the conversation.
        """
        waits_for = asked.waited.conversation_id if asked.waited is not None else None
        start = await self.origins.find(asked.caller, asked.request, waits_for)
        return replace(start, labels=asked.labels_of(start.request))

    async def branch(self, asked: AskedTurn, start: TurnStart, model: str) -> TurnStart:
        """Return where a turn of another model begins that branches off from where a turn does."""
        branch = await self.origins.branch(asked.caller, start)
        return replace(branch, request=start.request.model_copy(update={"model": model}))

    async def build(self, asked: AskedTurn, start: TurnStart, request_id: str) -> tuple[Turn, NewTurn]:
        """Build the turn that begins there, and the rows to store before it runs.

        Raises:
            BallastError: as `TurnDrafting.draft`, and `assemble`.
        """
        draft = await self.drafting.draft(asked, start, request_id)
        return await run_in_thread_if_large(start.size, lambda: assemble(draft))

    async def _prepare(self, asked: AskedTurn, request_id: str) -> StartableTurn:
        start = await self.start(asked)
        turn, rows = await self.build(asked, start, request_id)
        branch: Callable[[], Awaitable[StartableTurn]] = partial(self._prepare, asked, request_id)
        # Who resends a history names no conversation: where another turn was faster, this one branches off.
        return StartableTurn(turn, rows, branch if start.is_recognised else None)
