"""What surrounds a turn's current message: knowledge in scope and the dynamic context."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backend.conversations.domain.context_policy import BaseText
from backend.foundation.services.supervision import outcome_of
from backend.identity.domain.identity import Caller
from backend.knowledge.domain.access import strictest_mode
from backend.knowledge.domain.kb_meta import rendered_bases
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import Access, Label
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import access_to
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.turns.domain.requested_settings import base_param
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.ports.dynamic_blocks import DynamicBlockSource, TurnFacts
from backend.turns.ports.observer import TurnObserver
from shared.errors import BallastError, NotFound, Unavailable
from shared.models.execution import AccessMode, DynamicBlock, KnowledgeBaseRef


@dataclass(frozen=True)
class TurnScope:
    """The bases of a turn, and all that may be said to its model about this moment."""

    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    base_texts: tuple[BaseText, ...]
    dynamic_blocks: tuple[DynamicBlock, ...]


class TurnScopes:
    """Looks at memberships and asks the deployment's blocks, at every turn anew."""

    def __init__(
        self,
        knowledge: KnowledgeStore,
        descriptions: SafeDescriptions,
        blocks: Sequence[DynamicBlockSource],
        observer: TurnObserver,
    ) -> None:
        self._knowledge = knowledge
        self._descriptions = descriptions
        self._blocks = tuple(blocks)
        self._observer = observer

    async def bindings(self, caller: Caller, request: TurnRequest, base_ids: Sequence[str]) -> tuple[Binding, ...]:
        """Return what may be said of bases in the caller's roles; one kept from earlier turns that is gone is left out.

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
        return await self._descriptions.shown(found)

    async def access_to(self, caller: Caller, labels: Collection[Label]) -> Access:
        """Return the mode that the caller has today in each of the labelled bases of which he is a member."""
        return await access_to(self._knowledge, caller, labels)

    async def scope(self, bindings: tuple[Binding, ...], facts: TurnFacts) -> TurnScope:
        """Make the dynamic context.

        Raises:
            Unavailable: a block of the deployment failed; nothing has been stored or sent.
        """
        mode = strictest_mode(bindings)
        allowed = [source for source in self._blocks if mode is AccessMode.FULL or _accepts_restricted(source)]
        blocks = [await self._block(source, facts) for source in allowed]
        return TurnScope(
            bases=tuple(_ref(binding) for binding in bindings),
            access_mode=mode,
            base_texts=rendered_bases(bindings),
            dynamic_blocks=tuple(block for block in blocks if block is not None and block.text.strip()),
        )

    async def _block(self, source: DynamicBlockSource, facts: TurnFacts) -> DynamicBlock | None:
        outcome = await outcome_of(source.block(facts))
        if not isinstance(outcome, BaseException):
            return outcome
        if not isinstance(outcome, BallastError):
            self._observer.turn_broke(facts.turn_id, outcome)
        raise Unavailable("A dynamic block of this deployment failed.") from outcome


def _accepts_restricted(source: DynamicBlockSource) -> bool:
    """Ask a source that may have been written without the label: silence is a no."""
    return getattr(source, "accepts_restricted", False) is True


def _ref(binding: Binding) -> KnowledgeBaseRef:
    return KnowledgeBaseRef(id=binding.base.id, name=binding.base.name, access_mode=binding.role.access_mode)
