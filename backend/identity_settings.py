"""What an operator can set of who calls: the identity provider, its tokens and directory, signing in to the page."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from backend.identity.domain import ClaimNames, TokenTrust
from backend.scim.domain import ScimTerms
from backend.sign_in.domain import SignInTerms
from shared.environment import HeaderSecret, LongHeaderSecret, ServiceSettings, web_address
from shared.outgoing import is_unforgeable


def split_list(value: object) -> object:
    """Split a text at its commas."""
    return tuple(each.strip() for each in value.split(",") if each.strip()) if isinstance(value, str) else value


TOKEN_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms with a public key: with a shared secret, whoever can check tokens could also make them."""


def _check_algorithms(algorithms: tuple[str, ...]) -> tuple[str, ...]:
    if not algorithms or not set(algorithms) <= set(TOKEN_ALGORITHMS):
        raise ValueError(f"must list some of {', '.join(TOKEN_ALGORITHMS)}, separated by commas")
    return algorithms


def _unforgeable_address(value: str) -> str:
    """Check the address of the keys that tokens are checked with: who can change them on their way can be anybody."""
    if value and not is_unforgeable(web_address(value)):
        raise ValueError("must be an https address; plain http may lead to this machine only")
    return value


def _page_address(value: str) -> str:
    """Check the address of the page: cookies of sessions travel to it, and codes."""
    if value and urlsplit(_unforgeable_address(value)).path not in ("", "/"):
        raise ValueError("must be the address of the page without a path, such as https://ballast.example.com")
    return value.rstrip("/")


class IdentitySettings(ServiceSettings):
    """Who calls, but for keys."""

    jwt_issuer: str = Field("", alias="BACKEND_JWT_ISSUER")
    jwt_audience: Annotated[tuple[str, ...], BeforeValidator(split_list)] = Field((), alias="BACKEND_JWT_AUDIENCE")
    jwt_jwks_url: Annotated[str, AfterValidator(_unforgeable_address)] = Field("", alias="BACKEND_JWT_JWKS_URL")
    jwt_algorithms: Annotated[tuple[str, ...], BeforeValidator(split_list), AfterValidator(_check_algorithms)] = Field(
        ("RS256", "ES256"), alias="BACKEND_JWT_ALGORITHMS"
    )
    jwt_user_claim: str = Field("sub", alias="BACKEND_JWT_USER_CLAIM")
    jwt_tenant_claim: str = Field("", alias="BACKEND_JWT_TENANT_CLAIM")
    jwt_roles_claim: str = Field("", alias="BACKEND_JWT_ROLES_CLAIM")
    jwt_groups_claim: str = Field("", alias="BACKEND_JWT_GROUPS_CLAIM")
    jwt_admin_role: str = Field("", alias="BACKEND_JWT_ADMIN_ROLE")
    jwt_service_role: str = Field("", alias="BACKEND_JWT_SERVICE_ROLE")
    sign_in_client_id: str = Field("", alias="BACKEND_SIGN_IN_CLIENT_ID", max_length=256)
    sign_in_client_secret: HeaderSecret | None = Field(None, alias="BACKEND_SIGN_IN_CLIENT_SECRET")
    sign_in_url: Annotated[str, AfterValidator(_page_address)] = Field("", alias="BACKEND_SIGN_IN_URL")
    sign_in_scopes: str = Field("openid profile email", alias="BACKEND_SIGN_IN_SCOPES", pattern=r"(^|.* )openid( .*|$)")
    sign_in_hours: float = Field(12, alias="BACKEND_SIGN_IN_HOURS", gt=0, le=720)
    scim_token: LongHeaderSecret | None = Field(None, alias="BACKEND_SCIM_TOKEN")
    scim_tenant: str = Field("default", alias="BACKEND_SCIM_TENANT", min_length=1, max_length=256)

    @property
    def token_trust(self) -> TokenTrust | None:
        """Whose tokens name callers; None where no issuer is set."""
        if not self.jwt_issuer:
            return None
        claims = ClaimNames(
            user=self.jwt_user_claim,
            tenant=self.jwt_tenant_claim,
            roles=self.jwt_roles_claim,
            groups=self.jwt_groups_claim,
            admin_role=self.jwt_admin_role,
            service_role=self.jwt_service_role,
        )
        return TokenTrust(
            issuer=self.jwt_issuer,
            audiences=self.jwt_audience,
            key_set_url=self.jwt_jwks_url,
            algorithms=self.jwt_algorithms,
            claims=claims,
        )

    @property
    def sign_in(self) -> SignInTerms | None:
        """What is agreed with the identity provider; None where nobody signs in to the page."""
        if (trust := self.token_trust) is None or not self.sign_in_client_id:
            return None
        return SignInTerms(
            trust=trust,
            client_id=self.sign_in_client_id,
            client_secret=self.sign_in_client_secret,
            address=self.sign_in_url,
            scopes=self.sign_in_scopes,
            hours=self.sign_in_hours,
        )

    @property
    def scim(self) -> ScimTerms | None:
        """Who writes a directory over SCIM; None where nobody does."""
        return ScimTerms(self.scim_token.get_secret_value(), self.scim_tenant) if self.scim_token is not None else None

    @model_validator(mode="after")
    def _roles_have_a_claim(self) -> Self:
        if (self.jwt_admin_role or self.jwt_service_role) and not self.jwt_roles_claim:
            raise ValueError("BACKEND_JWT_ROLES_CLAIM: must name the claim in which a token lists its roles")
        return self
