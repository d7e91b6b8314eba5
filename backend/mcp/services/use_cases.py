"""The use cases of lookups, as one value for the application and the routes."""

from dataclasses import dataclass

from backend.knowledge.services.use_cases import KnowledgeServices
from backend.mcp.services.list_resources import ListResources
from backend.mcp.services.restricted_lookup import RestrictedLookup
from backend.mcp.services.search_bases import SearchBases


@dataclass(frozen=True)
class LookupServices:
    """What tools and resources call."""

    knowledge: KnowledgeServices
    search: SearchBases
    resources: ListResources


def build_lookups(knowledge: KnowledgeServices, restricted: RestrictedLookup) -> LookupServices:
    """Build the use cases."""
    return LookupServices(knowledge, SearchBases(knowledge, restricted), ListResources(knowledge))
