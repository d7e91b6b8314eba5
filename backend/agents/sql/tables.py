"""The tables of agents."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from backend.foundation.sql.schema import Instant, metadata, required

__all__ = ["agent", "agent_member"]

# `definition` is the JSON of an `AgentDefinition`; `visibility` is taken from it, for queries.
agent = Table(
    "agent",
    metadata,
    Column("id", Text, primary_key=True),
    required("tenant", Text),
    required("name", Text),
    required("visibility", Text),
    required("definition", Text),
    required("created_at", Instant),
    Index(None, "tenant", "name", unique=True),
)

agent_member = Table(
    "agent_member",
    metadata,
    Column("agent_id", Text, ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, primary_key=True),
    required("role", Text),
)
