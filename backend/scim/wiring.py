"""SCIM, built over the database by the library that speaks it."""

from backend.foundation.services.parts import Part
from backend.foundation.sql.database import Database
from backend.groups.services import FindOwned
from backend.scim.domain import ScimTerms
from backend.scim.services import ScimAccess
from backend.scim.sql.store import SqlDirectoryStore
from shared.clock import Clock


def build_scim(database: Database, terms: ScimTerms, find_owned: FindOwned, clock: Clock) -> Part:
    """Build what the routes call; `find_owned` knows what a group alone owns."""
    from backend.scim.protocol.server import LibraryServer
    from backend.scim.protocol.storage import DirectoryStorage

    storage = DirectoryStorage(SqlDirectoryStore(database), terms.tenant, find_owned, clock)
    return Part((ScimAccess(terms, LibraryServer(storage)),))
