"""Retention, built over the database."""

from backend.foundation.sql.database import Database
from backend.retention.domain import RetentionTerms
from backend.retention.services.sweeping import Retention
from backend.retention.sql.expiry import SqlExpiryStore
from backend.retention.telemetry.sweeps import LoggingRetention
from shared.clock import Clock


def build_retention(database: Database, terms: RetentionTerms, clock: Clock) -> Retention:
    """Build what sweeps."""
    return Retention(SqlExpiryStore(database, clock), terms, clock, LoggingRetention())
