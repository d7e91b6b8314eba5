"""All tables of the backend: importing a package's module of tables puts them into the one `metadata`."""

from backend.agents.sql import tables as agents
from backend.cells.sql import tables as cells
from backend.conversations.sql import tables as conversations
from backend.files.sql import tables as files
from backend.foundation.sql import schema
from backend.foundation.sql import tables as foundation
from backend.groups.sql import tables as groups
from backend.identity.sql import tables as identity
from backend.knowledge.sql import tables as knowledge
from backend.restricted.sql import tables as restricted
from backend.scim.sql import tables as scim
from backend.search.sql import tables as search

metadata = schema.metadata
PACKAGES = (agents, cells, conversations, files, foundation, groups, identity, knowledge, restricted, scim, search)
"""The modules whose tables it has."""
