"""Searching all bases of a caller: passages where they may read them, a safe summary where they are restricted."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.services.use_cases import KnowledgeServices
from backend.mcp.services.restricted_lookup import RestrictedLookup
from backend.search.domain.chunks import ChunkHit
from shared.models.execution import AccessMode
from shared.models.safe_summary import ReleasedSummary


class BasesSearch(NamedTuple):
    """What is searched: the query, the bases or None for all of the caller's, and how many passages they want."""

    query: str
    base_ids: Sequence[str] | None
    max_results: int


class BasesFound(NamedTuple):
    """The passages, best first, of the bases that were read, and the summary of those that are restricted.

    `summary` is None where nothing may be said of the restricted bases, whatever the cause. `passed_over` are
    restricted bases that were not searched.
    """

    hits: tuple[ChunkHit, ...]
    read: tuple[Binding, ...]
    restricted: tuple[Binding, ...]
    summary: ReleasedSummary | None
    passed_over: tuple[Binding, ...] = ()


class SearchBases:
    """Searches bases by the caller's present roles in them."""

    def __init__(self, knowledge: KnowledgeServices, restricted: RestrictedLookup) -> None:
        self._knowledge = knowledge
        self._restricted = restricted

    async def __call__(self, caller: Caller, search: BasesSearch, request_id: str) -> BasesFound:
        """Search; where no base is named and some that they may read answer, the restricted ones are passed over.

        Their few searches a day are for questions that need them.

        Raises:
            NotFound: the caller is not a member of a named base.
            Unavailable: what `RestrictedLookup` needs is away, where a base is restricted. Retryable.
        """
        bindings = await self._knowledge.bases.named(caller, search.base_ids)
        read = tuple(binding for binding in bindings if binding.role.access_mode is AccessMode.FULL)
        restricted = tuple(binding for binding in bindings if binding.role.access_mode is not AccessMode.FULL)
        hits = await self._knowledge.search.search_in(read, search.query, search.max_results) if read else ()
        if search.base_ids is None and hits:
            return BasesFound(hits, read, (), None, passed_over=restricted)
        summary = await self._restricted(caller, restricted, search.query, request_id) if restricted else None
        return BasesFound(hits, read, restricted, summary)
