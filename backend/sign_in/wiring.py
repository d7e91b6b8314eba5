"""The services of signing in, built over the keys of identity and the operator's identity provider."""

from datetime import timedelta

from backend.foundation.services.parts import Part
from backend.identity.ports import ApiKeyStore, TokenReading
from backend.identity.services import KeyAdministration
from backend.sign_in.domain import SignInTerms
from backend.sign_in.services import Sessions, SignIn
from backend.sign_in.telemetry.observer import LoggingSignInObserver
from shared.clock import Clock


def build_sign_in(
    store: ApiKeyStore,
    keys: KeyAdministration,
    tokens: TokenReading,
    terms: SignInTerms,
    proxy: str | None,
    clock: Clock,
) -> Part:
    """Build what the routes call; `proxy` is the way to the provider."""
    from backend.sign_in.providers.openid import OpenIdProvider

    observer = LoggingSignInObserver()
    sessions = Sessions(store, clock, keys, timedelta(hours=terms.hours), observer)
    return Part((SignIn(terms, OpenIdProvider(terms, tokens, proxy, clock), sessions, observer),))
