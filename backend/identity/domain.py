"""API keys, tokens of an identity provider, their roles, and authenticated callers."""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, cast

from pydantic import Field

from backend.foundation.domain.paging import PageQuery
from shared.errors import Unauthenticated
from shared.ids import IdPrefix, cell_of
from shared.models.values import Value

KEY_PREFIX = "sk-ballast-"
ROUTED_CHARACTERS = 18
"""The cell and 64 bits of the id: keys of one cell do not begin alike."""

DEFAULT_TENANT = "default"
MAX_PRINCIPAL_CHARS = 256
TOKEN_FORM = re.compile(r"ey[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
"""What begins with `{` in base64 and has three parts is a token (RFC 7515); no key that is issued here does."""

MAX_RATE = 1_000_000_000
"""The largest limit that can be set; Redis and both databases know numbers of this size."""
MOST_KEYS_OF_PAGE = 1000


class KeyRole(StrEnum):
    """The purpose of an API key: calls of its own user, administration, or calls on behalf of users."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


class KeyPageQuery(PageQuery):
    """The request for a page of keys, which takes all of most installations."""

    limit: int = Field(MOST_KEYS_OF_PAGE, ge=1, le=MOST_KEYS_OF_PAGE)
    order: Literal["asc", "desc"] = "asc"


class RateLimits(Value):
    """How much may be asked for: in a minute, and of turns at a time; what is None has no limit of its own."""

    turns_per_minute: int | None = Field(default=None, ge=1, le=MAX_RATE)
    tokens_per_minute: int | None = Field(default=None, ge=1, le=MAX_RATE)
    turns_at_once: int | None = Field(default=None, ge=1, le=MAX_RATE)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return not any(vars(self).values())

    def over(self, defaults: "RateLimits") -> "RateLimits":
        """Return these limits, and of the defaults what these leave open."""
        if self.is_empty or defaults.is_empty:
            return defaults if self.is_empty else self
        return RateLimits(**{**defaults.model_dump(), **self.model_dump(exclude_none=True)})


NO_LIMITS = RateLimits()


class Caller(Value):
    """The authenticated user of a request; with a service key, this is the user on whose behalf it calls.

    `key_id` is the id of the key, or made of the user whom a token names; it is empty where neither was presented.
    `limits` are those of the key itself; they are not stored with what the caller asks for.
    """

    user_id: str
    tenant: str
    role: KeyRole
    key_id: str = ""
    limits: RateLimits = Field(default=NO_LIMITS, exclude=True)


class KeyOrigin(StrEnum):
    """Where a key comes from: an administrator, the setting BACKEND_ADMIN_KEY, a first run, or signing in."""

    ISSUED = "issued"
    SETTING = "setting"
    GENERATED = "generated"
    SESSION = "session"


class ProviderSession(Value):
    """The session at an identity provider in which somebody signed in: its subject, and its id where that has one."""

    subject: str
    session_id: str | None = None


class ApiKey(Value):
    """An API key as stored; of the secret only the hash is stored.

    `origin` is None where the first release stored it. `last_used_at` is up to two minutes behind. `replaced_by` is the
    id of the key that a rotation has put in its place. A key that a browser keeps in a cookie has a `session`.
    """

    id: str
    key_hash: str
    user_id: str
    tenant: str
    role: KeyRole
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    origin: KeyOrigin | None = None
    replaced_by: str | None = None
    limits: RateLimits = NO_LIMITS
    session: ProviderSession | None = None

    def has_expired(self, now: datetime) -> bool:
        """Whether the key is refused because of its age."""
        return self.expires_at is not None and now >= self.expires_at


class ClaimNames(Value):
    """Which claims of a token name user, tenant, roles, groups, and which roles mean what; an empty name is no claim.

    A name is that of a claim, or a path into objects, such as `realm_access.roles`.
    """

    user: str = "sub"
    tenant: str = ""
    roles: str = ""
    groups: str = ""
    admin_role: str = ""
    service_role: str = ""


class TokenTrust(Value):
    """Whose tokens are accepted: the issuer's, for one of the audiences, signed with one of the algorithms."""

    issuer: str
    audiences: tuple[str, ...]
    key_set_url: str
    algorithms: tuple[str, ...]
    claims: ClaimNames = ClaimNames()


def caller_of_claims(claims: Mapping[str, object], names: ClaimNames) -> Caller:
    """Return whom the claims of a valid token name.

    Raises:
        Unauthenticated: they name no user or no tenant.
    """
    user_id = _principal(claims, names.user, "user")
    tenant = _principal(claims, names.tenant, "tenant") if names.tenant else DEFAULT_TENANT
    digest = hashlib.sha256(f"{tenant}\0{user_id}".encode("utf-8", "surrogatepass")).hexdigest()
    return Caller(user_id=user_id, tenant=tenant, role=_role(claims, names), key_id=f"jwt_{digest[:24]}")


def groups_in_claims(claims: Mapping[str, object], name: str, most: int) -> frozenset[str]:
    """Return the names of the groups that a token names; a token without the claim says that there are none.

    Raises:
        Unauthenticated: they are more than `most`, or no names.
    """
    given = _claim(claims, name)
    listed: object = [given] if isinstance(given, str) else [] if given is None else given
    names = cast(list[object], listed) if isinstance(listed, list) else None
    if names is None or len(names) > most or not all(isinstance(each, str) and is_principal(each) for each in names):
        raise Unauthenticated(
            f"The claim '{name}' of the token must be a list of at most {most} names of groups, each of 1 to "
            f"{MAX_PRINCIPAL_CHARS} printable characters without blanks around them."
        )
    return frozenset(cast(list[str], names))


def is_principal(name: str) -> bool:
    """Whether a user or a tenant may have this name."""
    return 0 < len(name) <= MAX_PRINCIPAL_CHARS and name.isprintable() and name == name.strip()


def _role(claims: Mapping[str, object], names: ClaimNames) -> KeyRole:
    given = _claim(claims, names.roles)
    listed: object = given.split() if isinstance(given, str) else given
    roles = cast(list[object], listed) if isinstance(listed, list) else []
    if names.admin_role and names.admin_role in roles:
        return KeyRole.ADMIN
    return KeyRole.SERVICE if names.service_role and names.service_role in roles else KeyRole.USER


def _principal(claims: Mapping[str, object], name: str, kind: str) -> str:
    value = _claim(claims, name)
    if isinstance(value, str) and is_principal(value):
        return value
    raise Unauthenticated(
        f"The token names no {kind}: its claim '{name}' must be a text of 1 to {MAX_PRINCIPAL_CHARS} printable "
        "characters without blanks around them."
    )


def _claim(claims: Mapping[str, object], name: str) -> object:
    """Return the claim of this name, or what the path leads to; some providers use names with dots in them."""
    if name in claims:
        return claims[name]
    place: object = claims
    for step in name.split("."):
        place = cast(Mapping[str, object], place).get(step) if isinstance(place, dict) else None
    return place


def key_beginning(key_id: str) -> str:
    """Return how a key begins: in a cell with a name, with the cell and a part of its id, by which it is routed.

    An id is no secret, and the 256 random bits behind it are all there.
    """
    if not cell_of(key_id):
        return KEY_PREFIX
    return f"{KEY_PREFIX}{key_id.removeprefix(f'{IdPrefix.API_KEY}_')[:ROUTED_CHARACTERS]}-"
