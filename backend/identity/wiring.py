"""The services of identity, built over the database and the operator's identity provider."""

from collections.abc import Awaitable, Callable

from backend.foundation.services.parts import Loop, Part
from backend.foundation.sql.database import Database
from backend.identity.domain import TokenTrust
from backend.identity.services import REFRESH_TOKEN_KEYS_SECONDS, WRITE_USES_SECONDS, Authenticate, KeyAdministration
from backend.identity.sql.api_keys import SqlApiKeyStore
from shared.clock import Clock

RefreshKeys = Callable[[], Awaitable[None]]
"""Fetches the public keys of the identity provider anew; those from before stay in use where it is away."""


def identity_part(authenticate: Authenticate, administration: KeyAdministration, refresh: RefreshKeys | None) -> Part:
    """Return what the package adds to the process; without an identity provider there is nothing to refresh."""
    uses = Loop("write_key_uses", authenticate.uses.write, WRITE_USES_SECONDS)
    refreshing = (Loop("token_keys", refresh, REFRESH_TOKEN_KEYS_SECONDS),) if refresh is not None else ()
    return Part((authenticate, administration), (uses, *refreshing))


def build_identity(
    database: Database, clock: Clock, trust: TokenTrust | None = None, proxy: str | None = None
) -> tuple[Authenticate, KeyAdministration, Part]:
    """Build the use cases of API keys, and of tokens where their issuer is trusted; `proxy` is the way to its keys."""
    store = SqlApiKeyStore(database)
    administration = KeyAdministration(store, clock)
    if trust is None:
        authenticate = Authenticate(store, clock)
        return authenticate, administration, identity_part(authenticate, administration, None)
    from backend.identity.tokens.provider_keys import ProviderKeys, fetch_over_http
    from backend.identity.tokens.verifier import JwtVerifier

    keys = ProviderKeys(fetch_over_http(trust.key_set_url, proxy), clock)
    authenticate = Authenticate(store, clock, JwtVerifier(keys, trust).caller)
    return authenticate, administration, identity_part(authenticate, administration, keys.refresh)
