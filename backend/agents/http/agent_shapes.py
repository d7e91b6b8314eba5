"""Agents and their members as clients see them."""

from typing import Literal

from pydantic import BaseModel

from backend.agents.domain.agent import AgentDefinition, AgentRole, KnownAgent
from backend.foundation.http.shapes import ListPage, RequestBody, unix_seconds


class ShownAgent(AgentDefinition):
    """An agent, and the caller's role in it; without the right to edit it, only the bases that the caller may use."""

    id: str
    object: Literal["agent"] = "agent"
    name: str
    role: AgentRole
    created_at: int


class AgentList(ListPage[ShownAgent]):
    """A page of the agents that the caller may use."""


class SetAgentMember(RequestBody):
    """The new role of a member."""

    role: Literal["owner", "editor", "reader"]


class ShownAgentMember(BaseModel):
    """A member of an agent."""

    object: Literal["agent.member"] = "agent.member"
    user_id: str
    role: AgentRole


class AgentMemberList(ListPage[ShownAgentMember]):
    """All members, by user id, in one page."""

    has_more: bool = False


def shown_agent(known: KnownAgent) -> ShownAgent:
    """Show an agent; a user who is not a member is shown as a reader. Its id is its name."""
    agent = known.agent
    return ShownAgent.model_construct(
        **dict(agent.definition),
        id=agent.name,
        name=agent.name,
        role=known.role or AgentRole.READER,
        created_at=unix_seconds(agent.created_at),
    )
