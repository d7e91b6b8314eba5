"""The services of restricted knowledge, built over the database and the services of knowledge."""

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from backend.embeddings.ports import Embedder
from backend.foundation.services.parts import Loop, Part
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore, OpenFileIndexes
from backend.knowledge.services.package import KnowledgePackage
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.close_searches import (
    CLOSE_SEARCHES_SECONDS,
    FORGET_SEARCHES_SECONDS,
    CloseSearches,
    ForgetSearches,
)
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.restricted.services.restricted_audit import ReadAudit, RestrictedAudit
from backend.restricted.services.sealed_outcomes import SealedOutcomes
from backend.restricted.services.sealed_search import SealedSearches, SearchTerms
from backend.restricted.services.ticketed_knowledge import TicketAccess, TicketedFiles, TicketedKnowledge
from backend.restricted.services.weigh_answers import PREPARE_SECONDS, AnswerWeighing
from backend.restricted.sql.audit import SqlAuditTrail
from backend.restricted.sql.ledger import SqlRestrictedLedger
from backend.restricted.telemetry.restricted import LoggingSafeSummaryObserver
from backend.search.ports.index import WordRuns
from backend.vector_stores.services.file_indexes import UploadsById
from shared.clock import Clock

if TYPE_CHECKING:
    from backend.restricted.services.meaning_scale import MeaningScale


class RestrictedTerms(NamedTuple):
    """The operator's limits and the longest time of a turn; `secret` is the key of tickets, canaries and hashes.

    `scale` weighs answers, and is None where they are not weighed.
    """

    limits: RestrictedLimits
    turn_time: timedelta
    secret: str
    scale: "MeaningScale | None"


def open_meaning_scale(embedder: Embedder, model: str, model_sha256: str) -> "MeaningScale":
    """Build what weighs answers by the vectors of an embedder."""
    from backend.restricted.services.meaning_scale import MeaningScale

    return MeaningScale(embedder, model, model_sha256)


def build_restricted(
    database: Database,
    clock: Clock,
    knowledge: KnowledgePackage,
    uploads: UploadsById,
    open_file_indexes: OpenFileIndexes,
    terms: RestrictedTerms,
) -> Part:
    """Build the package."""
    ledger, store, secret = SqlRestrictedLedger(database), knowledge.store, terms.secret
    audit = RestrictedAudit(ledger, LoggingSafeSummaryObserver(), clock, secret)
    access = TicketAccess(store, open_file_indexes, knowledge.descriptions, audit, clock, secret)
    weighing = AnswerWeighing(access, ledger, terms.scale, terms.limits.facts, secret)
    services = (
        TicketedKnowledge(store, knowledge.retrieval, access),
        TicketedFiles(uploads, store, access),
        SealedSearches(access, knowledge.retrieval, ledger, audit, weighing, SearchTerms(terms.limits, secret)),
        SealedOutcomes(access, ledger, audit, weighing, clock, secret),
        weighing,
        ReadAudit(SqlAuditTrail(database), secret),
    )
    close = CloseSearches(ledger, audit, clock, terms.turn_time).close
    forgetting = Loop("forget_searches", ForgetSearches(ledger, clock).forget, FORGET_SEARCHES_SECONDS)
    preparing = (Loop("prepare_weighing", terms.scale.prepare, PREPARE_SECONDS),) if terms.scale else ()
    return Part(services, (forgetting, Loop("close_searches", close, CLOSE_SEARCHES_SECONDS), *preparing))


def build_outgoing_check(
    database: Database, store: KnowledgeStore, words: WordRuns, clock: Clock, secret: str
) -> OutgoingCheck:
    """Build the check of what turns say; `secret` keys canaries."""
    return OutgoingCheck(store, words, SqlRestrictedLedger(database), clock, secret)
