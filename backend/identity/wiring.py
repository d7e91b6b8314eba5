"""The services of identity, built over the database and the operator's identity provider."""

from functools import partial
from typing import NamedTuple

from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.parts import Loop, Part
from backend.foundation.services.supervision import Step
from backend.foundation.sql.database import Database
from backend.identity.domain import TokenTrust
from backend.identity.ports import ApiKeyStore, NoteGroups, ReadTokens, TokenReading
from backend.identity.services import (
    REFRESH_TOKEN_KEYS_SECONDS,
    WRITE_USES_SECONDS,
    Authenticate,
    KeyAdministration,
    KnownKeys,
)
from backend.identity.sql.api_keys import SqlApiKeyStore
from shared.clock import Clock


def identity_part(
    authenticate: Authenticate, administration: KeyAdministration, refresh: Step | None, follow: Step | None
) -> Part:
    """Return what the package adds to the process.

    `refresh` fetches the public keys of the identity provider anew; those from before stay in use where it is away.
    `follow` hears of changes of API keys by other processes.
    """
    uses = Loop("write_key_uses", authenticate.uses.write, WRITE_USES_SECONDS)
    refreshing = (Loop("token_keys", refresh, REFRESH_TOKEN_KEYS_SECONDS),) if refresh is not None else ()
    following = (Loop("key_changes", follow),) if follow is not None else ()
    return Part((authenticate, administration), (uses, *refreshing, *following))


class IdentityPackage(NamedTuple):
    """The use cases of who calls, and what other packages build theirs of."""

    authenticate: Authenticate
    keys: KeyAdministration
    part: Part
    store: ApiKeyStore
    read_tokens: ReadTokens | None


def build_identity(
    database: Database,
    clock: Clock,
    redis: RedisClient | None,
    trust: TokenTrust | None = None,
    proxy: str | None = None,
    note_groups: NoteGroups | None = None,
) -> IdentityPackage:
    """Build the use cases of API keys, and of tokens where their issuer is trusted; `proxy` is the way to its keys.

    `note_groups` is told which groups tokens name. Processes that share keys tell each
    other over Redis when these change.
    """
    store, caller_of_token, refresh, follow, read_tokens = SqlApiKeyStore(database), None, None, None, None
    if trust is not None:
        from backend.identity.tokens.verifier import JwtVerifier, ProviderKeys, fetch_over_http

        keys = ProviderKeys(fetch_over_http(trust.key_set_url, proxy), clock)
        caller_of_token, refresh = JwtVerifier(keys, trust, note_groups).caller, keys.refresh

        def read_for(client_id: str) -> TokenReading:
            verifier = JwtVerifier(keys, trust.model_copy(update={"audiences": (client_id,)}), note_groups)
            return verifier.claims, verifier.caller_of, lambda address: fetch_over_http(address, proxy)()

        read_tokens = read_for
    known = KnownKeys(clock)
    if redis is not None:
        from backend.identity.redis.key_changes import RedisKeyChanges

        changes = RedisKeyChanges(redis)
        known = KnownKeys(clock, changes.announce)
        follow = partial(changes.follow, known.forget)
    authenticate = Authenticate(store, clock, known, caller_of_token)
    administration = KeyAdministration(store, clock, known)
    part = identity_part(authenticate, administration, refresh, follow)
    return IdentityPackage(authenticate, administration, part, store, read_tokens)
