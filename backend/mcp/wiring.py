"""The use cases of lookups, built over those of the packages below."""

from backend.foundation.services.admission import Admission
from backend.foundation.services.parts import Part
from backend.knowledge.services.knowledge_documents import KnowledgeDocuments, SearchKnowledge
from backend.knowledge.services.package import KnowledgePackage
from backend.mcp.chosen import McpLibrary
from backend.mcp.services.lookups import LookupPolicy, Lookups, RestrictedLookup
from backend.restricted.services.outgoing_scan import OutgoingTexts
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_ports import TurnPorts


def build_lookups(ports: TurnPorts, knowledge: KnowledgePackage, policy: TurnPolicy, admission: Admission) -> Part:
    """Build the package; `policy` is that of turns, whose times and secret hold here as well."""
    own = LookupPolicy(policy.secret, policy.timeout, policy.time_zone)
    restricted = RestrictedLookup(ports.chat_shell, OutgoingTexts(ports.outgoing), admission, ports.clock, own)
    documents, passages = KnowledgeDocuments(knowledge.store), SearchKnowledge(knowledge.store, knowledge.retrieval)
    return Part((McpLibrary(), Lookups(knowledge.bases, documents, passages, restricted)))
