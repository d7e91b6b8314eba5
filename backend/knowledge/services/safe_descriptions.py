"""Descriptions of bases for restricted members, checked against what the bases hold."""

from collections.abc import Sequence

from backend.knowledge.domain.knowledge import Binding, KnowledgeBase
from backend.knowledge.domain.safe_description import has_figure_or_order, places_of, routing_texts, without_texts
from backend.knowledge.domain.shared_runs import DESCRIPTION_RUNS, sequences_of
from backend.knowledge.ports.knowledge import DescriptionObserver, ProtectedKnowledge
from shared.models.execution import AccessMode

MAX_KEPT_VERDICTS = 4_096
"""The size of the cache of verdicts, each on one version of a base; the oldest is dropped first."""

_Described = tuple[str, int, tuple[str, ...]]


class SafeDescriptions:
    """Leaves out a hint or a keyword that reveals a base's content or gives instructions to a model.

    The verdict depends on nothing but the description and the base's version, so it is cached by both.
    """

    def __init__(self, protected: ProtectedKnowledge, observer: DescriptionObserver) -> None:
        self._protected = protected
        self._observer = observer
        self._verdicts: dict[_Described, frozenset[str]] = {}

    async def shown(self, bindings: Sequence[Binding]) -> tuple[Binding, ...]:
        """Return bindings with the parts of each base's description that its member may see.

        Raises:
            Unavailable: the database is away.
        """
        return tuple([await self._shown(binding) for binding in bindings])

    async def places_left_out(self, base: KnowledgeBase) -> tuple[str, ...]:
        """Return the fields that restricted members are not shown.

        Raises:
            Unavailable: the database is away.
        """
        return places_of(base, await self._left_out(base))

    async def _shown(self, binding: Binding) -> Binding:
        if binding.role.access_mode is AccessMode.FULL:
            return binding
        left_out = await self._left_out(binding.base)
        return binding.model_copy(update={"base": without_texts(binding.base, left_out)})

    async def _left_out(self, base: KnowledgeBase) -> frozenset[str]:
        described = (base.id, base.version, routing_texts(base))
        verdict = self._verdicts.get(described)
        if verdict is None:
            verdict = frozenset([text for text in described[2] if await self._is_telling(base.id, text)])
            if verdict:
                self._observer.texts_left_out(base.id, len(verdict))
            self._keep(described, verdict)
        return verdict

    async def _is_telling(self, base_id: str, text: str) -> bool:
        if has_figure_or_order(text):
            return True
        sequences = sequences_of(text, DESCRIPTION_RUNS)
        return bool(sequences) and await self._protected.holds_run([base_id], sequences)

    def _keep(self, described: _Described, verdict: frozenset[str]) -> None:
        if len(self._verdicts) >= MAX_KEPT_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[described] = verdict
