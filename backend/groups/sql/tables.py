"""The tables of groups, and how the tables of members find a user through the groups that they are in."""

from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    RowMapping,
    Select,
    Table,
    Text,
    bindparam,
    func,
    select,
)
from sqlalchemy.sql.selectable import CompoundSelect

from backend.foundation.sql.schema import Instant, metadata, require
from backend.foundation.sql.statements import Row
from backend.groups.domain import Group, GroupSource, name_group

person_group = Table(
    "person_group",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("name", Text),
    require("source", Text),
    require("created_at", Instant),
    Column("external_id", Text),
    Index(None, "tenant", "source", "name", unique=True),
)

# `named` is what stands for the group among members; the tenant is that of the group.
group_member = Table(
    "group_member",
    metadata,
    Column("group_id", Text, ForeignKey("person_group.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    require("tenant", Text),
    require("named", Text),
    Index(None, "tenant", "user_id", "named"),
)

_USER, _user_id = group_member.c.user_id, bindparam("user_id", type_=Text)

# What the newest token of a user said; an older token changes nothing.
claimed_groups = Table(
    "claimed_groups",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    require("digest", Text),
    require("issued_at", Integer),
)


def group_to_row(group: Group) -> dict[str, object]:
    """Make the columns of a group."""
    return {**group.model_dump(), "source": group.source.value}


def row_to_group(row: Row | RowMapping) -> Group:
    """Read a group of its columns."""
    fields = {name: row[name] for name in Group.model_fields if name != "source"}
    return Group(**fields, source=GroupSource(row["source"]))


def make_member_row(group_id: str, tenant: str, user_id: str) -> dict[str, str]:
    """Make the columns by which a user is in a group."""
    return {"group_id": group_id, "user_id": user_id, "tenant": tenant, "named": name_group(group_id)}


def in_groups(member: Column[str]) -> ColumnElement[bool]:
    """Say whether a member is a group of `tenant` that `user_id` is in."""
    theirs = select(group_member.c.named).where(group_member.c.tenant == bindparam("tenant"), _user_id == _USER)
    return member.in_(theirs)


def by_way(member: Column[str], found: Select[Any]) -> CompoundSelect[Any]:
    """Find what has `user_id` of `tenant` as a member, and what has a group that they are in: a row for each way.

    One statement of two parts, because each of them takes an index, and few are in groups.
    """
    return found.where(member == _user_id).union_all(found.where(in_groups(member)))


def is_anybody(member: Column[str]) -> ColumnElement[bool]:
    """Say whether a member is a user, or a group that somebody is in."""
    is_user = ~member.startswith(name_group(""))
    return is_user | select(group_member.c.user_id).where(group_member.c.group_id == func.substr(member, 2)).exists()
