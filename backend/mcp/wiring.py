"""The use cases of lookups, built over those of the packages below."""

from backend.foundation.services.admission import Admission
from backend.knowledge.services.use_cases import KnowledgeServices
from backend.mcp.services.restricted_lookup import LookupPolicy, RestrictedLookup
from backend.mcp.services.use_cases import LookupServices, build_lookups
from backend.restricted.services.outgoing_texts import OutgoingTexts
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_ports import TurnPorts


def build_lookup_services(
    ports: TurnPorts, knowledge: KnowledgeServices, policy: TurnPolicy, admission: Admission
) -> LookupServices:
    """Build the use cases; `policy` is that of turns, whose times and secret hold here as well."""
    own = LookupPolicy(policy.secret, policy.timeout, policy.time_zone)
    restricted = RestrictedLookup(ports.chat_shell, OutgoingTexts(ports.outgoing), admission, ports.clock, own)
    return build_lookups(knowledge, restricted)
