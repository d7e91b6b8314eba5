"""Checks tokens with PyJWT against the keys of the identity provider."""

from collections.abc import Mapping

import jwt

from backend.identity.domain import Caller, TokenTrust, caller_of_claims
from backend.identity.tokens.provider_keys import ProviderKeys
from shared.errors import Unauthenticated

MAX_TOKEN_CHARS = 16_384
LEEWAY_SECONDS = 30
"""By how much the clocks of the provider and of this machine may differ."""

_REFUSALS: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "The token has expired.",
    jwt.ImmatureSignatureError: "The token is not valid yet.",
    jwt.InvalidIssuerError: "The token is of another issuer than the one whose tokens are accepted here.",
    jwt.InvalidAudienceError: "The token is meant for another audience.",
    jwt.MissingRequiredClaimError: "The token lacks one of the claims exp, iss and aud.",
    jwt.InvalidSignatureError: "The signature of the token is wrong.",
}


class JwtVerifier:
    """Checks tokens. No refusal quotes a token, and none is the cause of another exception."""

    def __init__(self, keys: ProviderKeys, trust: TokenTrust) -> None:
        self._keys = keys
        self._trust = trust

    async def caller(self, token: str) -> Caller:
        """Return whom a token names; see `CallerOfToken`."""
        return caller_of_claims(await self._claims_of(token), self._trust.claims)

    async def _claims_of(self, token: str) -> Mapping[str, object]:
        kid, algorithm = self._read_header(token)
        key = await self._keys.find(kid, algorithm)
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._trust.audiences,
                issuer=self._trust.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            refusal = next((words for kind, words in _REFUSALS.items() if isinstance(error, kind)), None)
        raise Unauthenticated(refusal or "The token is not valid.")

    def _read_header(self, token: str) -> tuple[str | None, str]:
        if len(token) > MAX_TOKEN_CHARS:
            raise Unauthenticated(f"The token is longer than {MAX_TOKEN_CHARS} characters.")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            header = None
        if header is None:
            raise Unauthenticated("The token is no JWT.")
        algorithm = header.get("alg")
        if algorithm not in self._trust.algorithms:
            raise Unauthenticated("The token is signed with an algorithm that is not accepted here.")
        return header.get("kid"), str(algorithm)
