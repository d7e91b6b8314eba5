"""Users and groups as a directory sends them, and what a search over them looks for."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from unicodedata import normalize

from backend.groups.domain import Group
from shared.models.values import Value

LARGEST_BODY_BYTES = 4_194_304
"""Some 40,000 members of a group; a body is read in one step."""
LARGEST_PAGE = 500


class DirectoryUser(Value):
    """A user of a directory; `user_id` is their `userName`, and no other one of the tenant has it in any case.

    `resource` is what else the directory has sent, as JSON text. An inactive user keeps their place in groups, and has
    no right by them.
    """

    id: str
    tenant: str
    user_id: str
    external_id: str | None
    active: bool
    resource: str
    version: int
    created_at: datetime
    changed_at: datetime

    @property
    def key(self) -> str:
        """By what users are told apart."""
        return fold_name(self.user_id)


class DirectoryMember(NamedTuple):
    """A user in a group: their id in the directory, and their name."""

    id: str
    user_id: str


class DirectoryGroup(NamedTuple):
    """A group with the users in it, the inactive ones too, by their ids."""

    group: Group
    version: int
    changed_at: datetime
    members: tuple[DirectoryMember, ...] = ()


class GroupChange(NamedTuple):
    """What a group is to be: its name, its external id and the ids of the users in it."""

    group: Group
    expected: int
    changed_at: datetime
    member_ids: frozenset[str]


class Sought(NamedTuple):
    """What rows of a tenant must equal, by column, and which of these, in the order of names, are asked for."""

    tenant: str
    equal: Mapping[str, object]
    start: int = 0
    most: int | None = None


class StaleVersion(Exception):
    """Somebody else has changed it since it was read."""


class NoSuchMember(Exception):
    """A group is to have a member that is no user of the directory."""


class ScimCall(NamedTuple):
    """A request; `path` begins behind `base_url`, such as `/Users`."""

    method: str
    base_url: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class ScimAnswer(NamedTuple):
    """An answer; `body` is a JSON value or nothing."""

    status: int
    body: Mapping[str, Any] | None
    headers: Mapping[str, str]


class ScimTerms(NamedTuple):
    """Who may write a directory, and whose it is."""

    token: str
    tenant: str


def fold_name(name: str) -> str:
    """Return what is the same for names that differ in case alone, as the library of SCIM compares them."""
    return normalize("NFC", normalize("NFC", name).lower())


def describe_error(status: int, detail: str) -> ScimAnswer:
    """Return an error in SCIM's form (RFC 7644, 3.12)."""
    body = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "status": str(status), "detail": detail}
    return ScimAnswer(status, body, {})
