"""The tables of a directory: its users, and who has a place in which of its groups."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

scim_user = Table(
    "scim_user",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("user_id", Text),
    require("key", Text),
    Column("external_id", Text),
    require("active", Boolean),
    require("resource", Text),
    require("version", Integer),
    require("created_at", Instant),
    require("changed_at", Instant),
    Index(None, "tenant", "key", unique=True),
    Index(None, "tenant", "external_id"),
)

# What a row of `person_group` from a directory has besides.
scim_group = Table(
    "scim_group",
    metadata,
    Column("group_id", Text, ForeignKey("person_group.id", ondelete="CASCADE"), primary_key=True),
    require("version", Integer),
    require("changed_at", Instant),
)

# Places in groups; the rights that active users have by them are rows of `group_member`.
scim_member = Table(
    "scim_member",
    metadata,
    Column("group_id", Text, ForeignKey("person_group.id", ondelete="CASCADE"), primary_key=True),
    Column("member_id", Text, ForeignKey("scim_user.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "member_id"),
)
