"""The services of restricted knowledge, built over the database and the services of knowledge."""

from datetime import timedelta

from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import ProtectedKnowledge
from backend.knowledge.services.use_cases import KnowledgePorts
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.sealed_search import RestrictedUse
from backend.restricted.services.use_cases import RestrictedServices, UploadAccess, build_restricted
from backend.restricted.sql.audit import SqlAuditTrail
from backend.restricted.sql.ledger import SqlRestrictedLedger
from backend.restricted.telemetry.restricted import LoggingSafeSummaryObserver
from shared.clock import Clock


def build_restricted_services(
    database: Database,
    knowledge: KnowledgePorts,
    limits: RestrictedLimits,
    secret: str,
    turn_time: timedelta,
    uploads: UploadAccess,
) -> RestrictedServices:
    """Build the use cases; `secret` is the key of `RestrictedUse`."""
    ledger, clock = SqlRestrictedLedger(database), knowledge.clock
    audit = RestrictedAudit(ledger, LoggingSafeSummaryObserver(), clock, secret)
    use = RestrictedUse(ledger, audit, limits, clock, secret)
    return build_restricted(use, SqlAuditTrail(database), knowledge, turn_time, uploads)


def outgoing_check(database: Database, protected: ProtectedKnowledge, clock: Clock, secret: str) -> OutgoingCheck:
    """Build the check of what turns say; `secret` keys canaries."""
    return OutgoingCheck(protected, SqlRestrictedLedger(database), clock, secret)
