"""The services of identity, built over the database and the operator's identity provider."""

from collections.abc import Awaitable, Callable

from backend.foundation.sql.database import Database
from backend.identity.domain import TokenTrust
from backend.identity.services import Authenticate, KeyAdministration
from backend.identity.sql.api_keys import SqlApiKeyStore
from shared.clock import Clock

RefreshKeys = Callable[[], Awaitable[None]]
"""Fetches the public keys of the identity provider anew; those from before stay in use where it is away."""


def build_identity(
    database: Database, clock: Clock, trust: TokenTrust | None = None, proxy: str | None = None
) -> tuple[Authenticate, KeyAdministration, RefreshKeys | None]:
    """Build the use cases of API keys, and of tokens where their issuer is trusted; `proxy` is the way to its keys."""
    store = SqlApiKeyStore(database)
    administration = KeyAdministration(store, clock)
    if trust is None:
        return Authenticate(store, clock), administration, None
    from backend.identity.tokens.provider_keys import ProviderKeys, fetch_over_http
    from backend.identity.tokens.verifier import JwtVerifier

    keys = ProviderKeys(fetch_over_http(trust.key_set_url, proxy), clock)
    return Authenticate(store, clock, JwtVerifier(keys, trust).caller), administration, keys.refresh
