"""All routers of the backend's HTTP application."""

from backend.agents.http import routes as agents
from backend.console.http.routes import console_routers
from backend.conversations.http import routes as conversations
from backend.conversations.http import routes_members as members
from backend.embeddings.http import routes as embeddings
from backend.embeddings.http import routes_moderations as moderations
from backend.files.http import routes as files
from backend.foundation.http import routes_health as health
from backend.foundation.http.json_body import Routers
from backend.groups.http import routes as groups
from backend.identity.http import routes_api_keys as api_keys
from backend.identity.http import routes_metrics as shown_metrics
from backend.knowledge.http import routes as knowledge
from backend.knowledge.http import routes_members as base_members
from backend.mcp.http import routes as lookups
from backend.prompt.http import routes_prompts as prompts
from backend.restricted.http import routes_audit as audit
from backend.restricted.http import routes_internal as internal
from backend.restricted.http import routes_receipts as receipts
from backend.retention.http import routes as users
from backend.scim.http import routes as scim
from backend.sign_in.http import routes as sign_in
from backend.turns.http import responses_socket as socket
from backend.turns.http import routes as responses
from backend.turns.http import routes_chat as chat
from backend.turns.http import routes_models as models
from backend.turns.http.paced_following import PacedFollowing
from backend.turns.http.refused_early import RefusedEarly
from backend.vector_stores.http import routes as vector_stores
from backend.vector_stores.http import routes_batches as file_batches
from backend.vector_stores.http import routes_files as vector_store_files

STORES = (vector_stores, vector_store_files, file_batches)

# Tried in this order: the routes that are called most come first, and a router with one of them before one with many.
_ROUTES_FIRST = (chat, responses, prompts, health, conversations, models)
_ROUTES_THEN = (members, agents, knowledge, base_members, files, *STORES, embeddings, moderations, lookups, api_keys)
_ROUTES_LAST = (groups, users, audit, receipts, internal, socket)
ROUTERS = tuple(part.router for part in (*_ROUTES_FIRST, *_ROUTES_THEN, *_ROUTES_LAST))
OPERATOR_ROUTERS = (health.router, health.metrics_router)
"""What a port of operators has: there all metrics need no key."""
OPEN_METRICS = (shown_metrics.router,)
METRICS_OF_ADMINISTRATORS = (shown_metrics.router_beside_operators,)
"""What the public port has where operators have a port of their own."""

BEFORE_BODIES = (RefusedEarly, PacedFollowing)
"""What sees a request before anything of its body is read."""


def public_routers(*, beside_operators: bool, page: bool, signs_in: bool, has_directory: bool = False) -> Routers:
    """Return what the public port has: the API, metrics as the operator's port leaves them, and what is chosen."""
    metrics = METRICS_OF_ADMINISTRATORS if beside_operators else OPEN_METRICS
    chosen = (*((sign_in.router,) if signs_in else ()), *((scim.router,) if has_directory else ()))
    return (*ROUTERS, *metrics, *console_routers(is_on=page, signs_in=signs_in), *chosen)
