"""What is sent to an identity provider and read from it (OpenID Connect Core 1.0, RFC 7636, RFC 9207)."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlencode, urlsplit

from pydantic import SecretStr, ValidationError

from backend.identity.domain import ProviderSession, TokenTrust
from shared.errors import InvalidRequest, Unauthenticated
from shared.models.values import Value

LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class SignInTerms(Value):
    """What an operator has agreed with the provider; `address` is that of the page, as browsers see it."""

    trust: TokenTrust
    client_id: str
    client_secret: SecretStr | None = None
    address: str
    scopes: str = "openid profile email"
    hours: float = 12

    @property
    def issuer(self) -> str:
        """Who the provider says that it is."""
        return self.trust.issuer

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the page over https."""
        return urlsplit(self.address).scheme == "https"

    @property
    def callback(self) -> str:
        """The address at which the provider sends the browser back."""
        return f"{self.address}/sign-in/callback"


class Endpoints(Value):
    """Where a provider is asked what; `takes_basic` says that a client's secret is sent in a header."""

    authorization: str
    token: str
    end_session: str | None = None
    takes_basic: bool = True

    @classmethod
    def read(cls, document: object, issuer: str) -> "Endpoints":
        """Read a provider's discovery document.

        Raises:
            ValueError: it is none, or that of another issuer.
        """
        fields: Mapping[str, object] = cast(Mapping[str, object], document) if isinstance(document, dict) else {}
        if fields.get("issuer") != issuer:
            raise ValueError("is the document of another issuer")
        methods = fields.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        listed = cast(list[object], methods) if isinstance(methods, list) else []
        try:
            return cls.model_validate(
                {
                    "authorization": fields.get("authorization_endpoint"),
                    "token": fields.get("token_endpoint"),
                    "end_session": fields.get("end_session_endpoint"),
                    "takes_basic": "client_secret_basic" in listed or "client_secret_post" not in listed,
                }
            )
        except ValidationError:
            raise ValueError("names no addresses for signing in") from None


class Attempt(Value):
    """One way to the provider and back, which the browser keeps in a cookie; each part is random."""

    state: str
    nonce: str
    verifier: str

    def to_cookie(self) -> str:
        """Return the parts as one text."""
        return f"{self.state}.{self.nonce}.{self.verifier}"

    @classmethod
    def from_cookie(cls, text: str | None) -> "Attempt":
        """Read what `to_cookie` gave.

        Raises:
            Unauthenticated: this browser has begun nothing, or more than ten minutes ago.
        """
        parts = (text or "").split(".")
        if len(parts) != 3 or not all(parts):
            raise Unauthenticated("This browser has begun no sign-in, or has taken longer than ten minutes.")
        return cls(state=parts[0], nonce=parts[1], verifier=parts[2])

    def address(self, endpoints: Endpoints, terms: SignInTerms) -> str:
        """Return where the browser is sent."""
        challenge = urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": terms.client_id,
            "redirect_uri": terms.callback,
            "scope": terms.scopes,
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoints.authorization}{'&' if '?' in endpoints.authorization else '?'}{urlencode(query)}"

    def code_in(self, answer: Mapping[str, str], issuer: str) -> str:
        """Return the code with which the provider sends a browser back.

        Raises:
            Unauthenticated: it answers another attempt, comes from another provider, or signs nobody in.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(), self.state.encode()):
            raise Unauthenticated("The answer belongs to another sign-in than the one that this browser began.")
        if answer.get("iss", issuer) != issuer:
            raise Unauthenticated("The answer comes from another identity provider.")
        if "error" in answer:
            raise Unauthenticated("The identity provider signed nobody in.")
        if not answer.get("code"):
            raise Unauthenticated("The answer of the identity provider holds no code.")
        return answer["code"]


def session_in(claims: Mapping[str, object], client_id: str, nonce: str) -> ProviderSession:
    """Return the session that an ID token is about; its signature, issuer, audience and age have been checked.

    Raises:
        Unauthenticated: it was made for another sign-in or another client, or names no subject.
    """
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise Unauthenticated("The ID token belongs to another sign-in: its nonce is wrong.")
    if claims.get("azp", client_id) != client_id:
        raise Unauthenticated("The ID token was issued to another client.")
    subject, session_id = claims.get("sub"), claims.get("sid")
    if not isinstance(subject, str) or not subject:
        raise Unauthenticated("The ID token names no subject.")
    return ProviderSession(subject=subject, session_id=session_id if isinstance(session_id, str) else None)


def session_ended_by(claims: Mapping[str, object]) -> ProviderSession:
    """Return the session that a logout token ends, or all of its subject (Back-Channel Logout 1.0, section 2.6).

    Raises:
        InvalidRequest: it is no logout token.
    """
    events, subject, session_id = claims.get("events"), claims.get("sub"), claims.get("sid")
    is_logout = isinstance(events, dict) and LOGOUT_EVENT in events and "nonce" not in claims
    names_one = any(isinstance(name, str) and name for name in (subject, session_id))
    if not is_logout or not names_one:
        raise InvalidRequest("No logout token: it needs events, sub or sid, and no nonce.", param="logout_token")
    named = session_id if isinstance(session_id, str) and session_id else None
    return ProviderSession(subject=subject if isinstance(subject, str) else "", session_id=named)
