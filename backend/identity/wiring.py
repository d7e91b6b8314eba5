"""The services of identity, built over the database."""

from backend.foundation.sql.database import Database
from backend.identity.services import IdentityServices, build_identity
from backend.identity.sql.api_keys import SqlApiKeyStore
from shared.clock import Clock


def identity_services(database: Database, clock: Clock) -> IdentityServices:
    """Build the use cases of API keys."""
    return build_identity(SqlApiKeyStore(database), clock)
