"""The tables of agents."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from backend.foundation.sql.schema import Instant, metadata, require

__all__ = ["agent", "agent_member"]

# `definition` is the JSON of an `AgentDefinition`; `visibility` is taken from it, for queries.
agent = Table(
    "agent",
    metadata,
    Column("id", Text, primary_key=True),
    require("tenant", Text),
    require("name", Text),
    require("visibility", Text),
    require("definition", Text),
    require("created_at", Instant),
    Index(None, "tenant", "name", unique=True),
)

agent_member = Table(
    "agent_member",
    metadata,
    Column("agent_id", Text, ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    require("role", Text),
)
