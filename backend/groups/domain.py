"""Groups of a tenant, how they are named as members, and who says who is in them."""

import hashlib
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from shared.errors import Conflict
from shared.models.values import Value

_MARK = "\x1f"


class GroupSource(StrEnum):
    """Who says what a group is and who is in it: this API, a directory over SCIM, or the claims of tokens."""

    API = "api"
    SCIM = "scim"
    CLAIM = "claim"


class Group(Value):
    """A group; no other of its tenant and source has its name. `external_id` is what the directory calls it."""

    id: str
    tenant: str
    name: str
    source: GroupSource
    created_at: datetime
    external_id: str | None = None


class ClaimedSet(NamedTuple):
    """A digest of the groups that the newest token of a user named, and when that was issued (Unix seconds)."""

    digest: str
    issued_at: int


def name_group(group_id: str) -> str:
    """Return what stands for a group among members, where others are named by their user ids.

    It begins with a character that is not printable, which no user id has.
    """
    return _MARK + group_id


def group_in(member: str) -> str | None:
    """Return the id of the group that is a member; None where a user is."""
    return member.removeprefix(_MARK) if member.startswith(_MARK) else None


def digest_names(names: Collection[str]) -> str:
    """Return what differs where a set of names differs."""
    text = "\0".join(sorted(names))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def require_source(group: Group, source: GroupSource) -> None:
    """Require a group that is changed here.

    Raises:
        Conflict: somebody else says who is in it.
    """
    if group.source is not source:
        said = {GroupSource.API: "this API", GroupSource.SCIM: "a directory over SCIM", GroupSource.CLAIM: "tokens"}
        raise Conflict(f"What this group is, is said by {said[group.source]}; change it there.", param="group_id")
