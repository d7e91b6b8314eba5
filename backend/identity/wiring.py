"""The services of identity, built over the database and the operator's identity provider."""

from backend.foundation.sql.database import Database
from backend.identity.domain import TokenTrust
from backend.identity.services import IdentityServices, TokenCallers, build_identity
from backend.identity.sql.api_keys import SqlApiKeyStore
from shared.clock import Clock


def identity_services(
    database: Database, clock: Clock, trust: TokenTrust | None = None, proxy: str | None = None
) -> IdentityServices:
    """Build the use cases of API keys, and of tokens where their issuer is trusted; `proxy` is the way to its keys."""
    tokens = _token_callers(trust, clock, proxy) if trust is not None else None
    return build_identity(SqlApiKeyStore(database), clock, tokens)


def _token_callers(trust: TokenTrust, clock: Clock, proxy: str | None) -> TokenCallers:
    from backend.identity.tokens.provider_keys import ProviderKeys, fetch_over_http
    from backend.identity.tokens.verifier import JwtVerifier

    keys = ProviderKeys(fetch_over_http(trust.key_set_url, proxy), clock)
    return TokenCallers(JwtVerifier(keys, trust), trust.claims)
