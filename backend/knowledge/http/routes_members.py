"""The members of knowledge bases: users, and groups of them."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Response
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody
from backend.groups.services import GroupNames, NamedMember
from backend.identity.domain import Caller
from backend.identity.http.caller import CallerDep
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.services.knowledge_access import KnowledgeMembers

MembersDep = Annotated[KnowledgeMembers, Depends(service_of(KnowledgeMembers))]
NamesDep = Annotated[GroupNames, Depends(service_of(GroupNames))]
router = new_router("Knowledge bases")

MEMBERS = "/v1/knowledge_bases/{base_id}/members"
MEMBER = f"{MEMBERS}/{{user_id}}"
MEMBER_GROUP = f"{MEMBERS}/groups/{{group_id}}"
UserId = Annotated[PrincipalName, Path()]
_DELETED = "knowledge_base.member.deleted"


class SetMember(RequestBody):
    """The new role of a member."""

    role: Literal["owner", "editor", "reader", "restricted_analyst"]


class ShownMember(BaseModel):
    """A member of a base: a user, or else a group, whose id and name then stand here and no user id."""

    object: Literal["knowledge_base.member"] = "knowledge_base.member"
    user_id: str | None
    group_id: str | None = None
    group: str | None = None
    role: MemberRole


class MemberList(ListPage[ShownMember]):
    """All members, groups first and then users by their ids, in one page."""

    has_more: bool = False


_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": ShownMember}}


@router.get(MEMBERS, summary="List members")
async def list_members(base_id: str, members: MembersDep, names: NamesDep, caller: CallerDep) -> MemberList:
    """Return all members."""
    roles = await members.all(caller, base_id)
    named = await names.name(caller.tenant, roles)
    shown = [_show(member, roles[name]) for name, member in named.items()]
    return MemberList.of(shown, [member.id for member in named.values()])


@router.put(MEMBER, summary="Set a member", responses=_CREATED)
async def set_member(
    base_id: str, user_id: UserId, body: SetMember, response: Response, members: MembersDep, caller: CallerDep
) -> ShownMember:
    """Add a member (201) or change their role (200); for owners. The last owner cannot get another role."""
    role = MemberRole(body.role)
    is_new = await members.set(caller, base_id, user_id, role)
    response.status_code = 201 if is_new else 200
    return ShownMember(user_id=user_id, role=role)


@router.get(MEMBER, summary="Retrieve a member")
async def retrieve_member(base_id: str, user_id: UserId, members: MembersDep, caller: CallerDep) -> ShownMember:
    """Return a member's role."""
    return ShownMember(user_id=user_id, role=await members.find(caller, base_id, user_id))


@router.delete(MEMBER, summary="Remove a member")
async def remove_member(base_id: str, user_id: UserId, members: MembersDep, caller: CallerDep) -> Deleted:
    """Remove a member; for owners. The last owner cannot be removed."""
    await members.remove(caller, base_id, user_id)
    return Deleted(id=user_id, object=_DELETED)


def _place(base_id: str, group_id: str, caller: CallerDep) -> tuple[Caller, str, str]:
    return caller, base_id, group_id


PlaceDep = Annotated[tuple[Caller, str, str], Depends(_place)]
"""Who calls, the base, and the id of the group."""


@router.put(MEMBER_GROUP, summary="Set a group as member", responses=_CREATED)
async def set_member_group(
    place: PlaceDep, body: SetMember, response: Response, members: MembersDep, names: NamesDep
) -> ShownMember:
    """Add a group (201) or change its role (200); for owners. Who has several roles has the strictest of them."""
    role, (caller, base_id, group_id) = MemberRole(body.role), place
    member, named = await names.member(caller, group_id)
    response.status_code = 201 if await members.set(caller, base_id, member, role) else 200
    return _show(named, role)


@router.get(MEMBER_GROUP, summary="Retrieve a group that is a member")
async def retrieve_member_group(place: PlaceDep, members: MembersDep, names: NamesDep) -> ShownMember:
    """Return the role of a group."""
    caller, base_id, group_id = place
    member, named = await names.member(caller, group_id)
    return _show(named, await members.find(caller, base_id, member))


@router.delete(MEMBER_GROUP, summary="Remove a group")
async def remove_member_group(place: PlaceDep, members: MembersDep, names: NamesDep) -> Deleted:
    """Take a base from a group; for owners. The last owner cannot be removed."""
    caller, base_id, group_id = place
    member, _ = await names.member(caller, group_id)
    await members.remove(caller, base_id, member)
    return Deleted(id=group_id, object=_DELETED)


def _show(member: NamedMember, role: MemberRole) -> ShownMember:
    return ShownMember(**member._asdict(), role=role)
