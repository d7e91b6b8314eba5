"""The sources of a turn's dynamic context: the knowledge bases in scope and the blocks of the deployment."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.withheld import find_withheld_turns, labels_in
from backend.foundation.services.supervision import result_or_error
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Access, Label
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import LabelAccess
from backend.openai_api.domain.requested_settings import base_param
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.ports.dynamic_blocks import DynamicBlockSource, TurnFacts
from backend.turns.ports.observer import TurnObserver
from shared.errors import BallastError, NotFound, Unavailable
from shared.models.execution import AccessMode, DynamicBlock


class ContextSources:
    """Reads memberships and calls the dynamic blocks of the deployment, anew in every turn.

    `show` gives bases the descriptions that those with their roles may see.
    """

    def __init__(
        self,
        knowledge: KnowledgeStore,
        access: LabelAccess,
        show: Callable[[Sequence[Binding]], Awaitable[tuple[Binding, ...]]],
        blocks: Sequence[DynamicBlockSource],
        observer: TurnObserver,
    ) -> None:
        self._knowledge = knowledge
        self._access = access
        self._show = show
        self._blocks = tuple(blocks)
        self._observer = observer

    async def bindings(self, caller: Caller, request: TurnRequest, base_ids: Sequence[str]) -> tuple[Binding, ...]:
        """Return the bases with the caller's roles and the descriptions that may be shown.

        A base that an earlier turn bound and that no longer exists is left out.

        Raises:
            NotFound: a base named by the request is not there, or the caller is no member.
        """
        if not base_ids:
            return ()
        found = await self._knowledge.bindings(caller.tenant, caller.user_id, base_ids)
        missing = set(base_ids).difference(binding.base.id for binding in found)
        for base_id in sorted(missing):
            param = base_param(request, base_id)
            if param is not None:
                raise NotFound(f"There is no knowledge base '{base_id}'.", param=param)
        return await self._show(found)

    async def find_withheld(self, caller: Caller, log: Sequence[Entry]) -> frozenset[str]:
        """Return the ids of the turns of a log whose text the caller may not read today."""
        return find_withheld_turns(log, await self._access.of(caller, labels_in(log)))

    async def access(self, caller: Caller, labels: Collection[Label]) -> Access:
        """Return the caller's mode of today in each of the labelled bases of which they are a member."""
        return await self._access.of(caller, labels)

    async def dynamic_blocks(self, mode: AccessMode, facts: TurnFacts) -> tuple[DynamicBlock, ...]:
        """Return the blocks of this deployment; a restricted turn gets those of sources that accept it.

        Raises:
            Unavailable: a block of the deployment failed; nothing has been stored or sent.
        """
        allowed = [source for source in self._blocks if mode is AccessMode.FULL or _accepts_restricted(source)]
        blocks = [await self._block(source, facts) for source in allowed]
        return tuple(block for block in blocks if block is not None and block.text.strip())

    async def _block(self, source: DynamicBlockSource, facts: TurnFacts) -> DynamicBlock | None:
        outcome = await result_or_error(source.block(facts))
        if not isinstance(outcome, BaseException):
            return outcome
        if not isinstance(outcome, BallastError):
            self._observer.turn_broke(facts.turn_id, outcome)
        raise Unavailable("A dynamic block of this deployment failed.") from outcome


def _accepts_restricted(source: DynamicBlockSource) -> bool:
    """Whether a source declares it; a source without the attribute does not accept restricted turns."""
    return getattr(source, "accepts_restricted", False) is True
