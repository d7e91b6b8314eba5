"""Agents and their members."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, TypeAdapter

from backend.agents.domain.agent import NAME_PATTERN, AgentDefinition, AgentRole, AgentTool, KnownAgent
from backend.agents.services.agents import AgentCatalogue, AgentMembers
from backend.conversations.domain.item_steps import body_cooperatively
from backend.foundation.domain.paging import PageQuery
from backend.foundation.http.inline_schema import describe_body
from backend.foundation.http.json_body import check_media_type, new_router, read_json
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody, unix_seconds
from backend.foundation.services.steps import run_cooperatively
from backend.groups.services import GroupNames
from backend.identity.domain import Caller
from backend.identity.http.caller import CallerDep


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
    """A member of an agent: a user, or else a group, whose id and name then stand here and no user id."""

    object: Literal["agent.member"] = "agent.member"
    user_id: str | None
    group_id: str | None = None
    group: str | None = None
    role: AgentRole


class AgentMemberList(ListPage[ShownAgentMember]):
    """All members, groups first and then users by their ids, in one page."""

    has_more: bool = False


def show_agent(known: KnownAgent) -> ShownAgent:
    """Show an agent; a user who is not a member is shown as a reader. Its id is its name."""
    agent = known.agent
    return ShownAgent.model_construct(
        **dict(agent.definition),
        id=agent.name,
        name=agent.name,
        role=known.role or AgentRole.READER,
        created_at=unix_seconds(agent.created_at),
    )


AgentsDep = Annotated[AgentCatalogue, Depends(service_of(AgentCatalogue))]
MembersDep = Annotated[AgentMembers, Depends(service_of(AgentMembers))]
NamesDep = Annotated[GroupNames, Depends(service_of(GroupNames))]
router = new_router("Agents")

AGENT = "/v1/agents/{name}"
AGENT_MEMBER = f"{AGENT}/members/{{user_id}}"
AGENT_MEMBER_GROUP = f"{AGENT}/members/groups/{{group_id}}"


def _place(name: str, group_id: str, caller: CallerDep) -> tuple[Caller, str, str]:
    return caller, name, group_id


AgentPlaceDep = Annotated[tuple[Caller, str, str], Depends(_place)]
NewName = Annotated[str, Path(pattern=NAME_PATTERN)]
AgentUserId = Annotated[PrincipalName, Path()]
_TOOL: TypeAdapter[AgentTool] = TypeAdapter(AgentTool)
_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": ShownAgent}}
_MEMBER_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": ShownAgentMember}}


@router.put(AGENT, summary="Put an agent", responses=_CREATED, openapi_extra=describe_body(AgentDefinition))
async def put_agent(
    name: NewName, request: Request, response: Response, agents: AgentsDep, caller: CallerDep
) -> ShownAgent:
    """Create an agent that the caller owns (201), or replace one that they may edit (200)."""
    check_media_type(request)
    definition = await run_cooperatively(body_cooperatively(AgentDefinition, await read_json(request), "tools", _TOOL))
    known, is_new = await agents.put(caller, name, definition)
    response.status_code = 201 if is_new else 200
    return show_agent(known)


@router.get("/v1/agents", summary="List agents")
async def list_agents(agents: AgentsDep, caller: CallerDep, page: Annotated[PageQuery, Query()]) -> AgentList:
    """Return a page of the agents that the caller may use, the newest first unless asked otherwise."""
    found, has_more = await agents.page(caller, after=page.after, limit=page.limit, descending=page.descending)
    return AgentList.of([show_agent(each) for each in found], [each.agent.name for each in found], has_more=has_more)


@router.get(AGENT, summary="Retrieve an agent")
async def retrieve_agent(name: str, agents: AgentsDep, caller: CallerDep) -> ShownAgent:
    """Return an agent that the caller may use."""
    return show_agent(await agents.find(caller, name))


@router.delete(AGENT, summary="Delete an agent")
async def delete_agent(name: str, agents: AgentsDep, caller: CallerDep) -> Deleted:
    """Delete an agent; for owners. Conversations that use it have to name another model."""
    await agents.delete(caller, name)
    return Deleted(id=name, object="agent.deleted")


@router.get(f"{AGENT}/members", summary="List members of an agent")
async def list_agent_members(name: str, members: MembersDep, names: NamesDep, caller: CallerDep) -> AgentMemberList:
    """Return all members by user id; for members."""
    roles = await members.all(caller, name)
    named = await names.name(caller.tenant, roles)
    shown = [ShownAgentMember(**member._asdict(), role=roles[name]) for name, member in named.items()]
    return AgentMemberList.of(shown, [member.id for member in named.values()])


@router.put(AGENT_MEMBER, summary="Set a member of an agent", responses=_MEMBER_CREATED)
async def set_agent_member(
    name: str, user_id: AgentUserId, body: SetAgentMember, response: Response, members: MembersDep, caller: CallerDep
) -> ShownAgentMember:
    """Add a member (201) or change their role (200); for owners. The last owner cannot get another role."""
    role = AgentRole(body.role)
    is_new = await members.set(caller, name, user_id, role)
    response.status_code = 201 if is_new else 200
    return ShownAgentMember(user_id=user_id, role=role)


@router.get(AGENT_MEMBER, summary="Retrieve a member of an agent")
async def retrieve_agent_member(
    name: str, user_id: AgentUserId, members: MembersDep, caller: CallerDep
) -> ShownAgentMember:
    """Return a member's role; for members."""
    return ShownAgentMember(user_id=user_id, role=await members.find(caller, name, user_id))


@router.delete(AGENT_MEMBER, summary="Remove a member of an agent")
async def remove_agent_member(name: str, user_id: AgentUserId, members: MembersDep, caller: CallerDep) -> Deleted:
    """Remove a member; for owners. The last owner cannot be removed."""
    await members.remove(caller, name, user_id)
    return Deleted(id=user_id, object="agent.member.deleted")


@router.put(AGENT_MEMBER_GROUP, summary="Set a group as member of an agent", responses=_MEMBER_CREATED)
async def set_agent_member_group(
    place: AgentPlaceDep, body: SetAgentMember, response: Response, members: MembersDep, names: NamesDep
) -> ShownAgentMember:
    """Add a group (201) or change its role (200); for owners. Who has several roles has the strictest of them."""
    role, (caller, name, group_id) = AgentRole(body.role), place
    member, named = await names.member(caller, group_id)
    response.status_code = 201 if await members.set(caller, name, member, role) else 200
    return ShownAgentMember(**named._asdict(), role=role)


@router.delete(AGENT_MEMBER_GROUP, summary="Remove a group from an agent")
async def remove_agent_member_group(place: AgentPlaceDep, members: MembersDep, names: NamesDep) -> Deleted:
    """Take an agent from a group; for owners. The last owner cannot be removed."""
    caller, name, group_id = place
    member, _ = await names.member(caller, group_id)
    await members.remove(caller, name, member)
    return Deleted(id=group_id, object="agent.member.deleted")
