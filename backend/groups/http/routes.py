"""Groups, and who is in them: for administrators; others see the groups that they are in."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, Field

from backend.foundation.domain.paging import PageQuery
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody, unix_seconds
from backend.groups.domain import Group, GroupSource
from backend.groups.services import GroupDirectory
from backend.identity.http.caller import AdminDep, CallerDep

GroupsDep = Annotated[GroupDirectory, Depends(service_of(GroupDirectory))]
router = new_router("Groups")

GROUP = "/v1/groups/{group_id}"
GROUP_MEMBER = f"{GROUP}/members/{{user_id}}"
GroupUserId = Annotated[PrincipalName, Path()]
DEFAULT_PEOPLE, MOST_PEOPLE = 100, 1_000


class CreateGroup(RequestBody):
    """A new group; one of tokens (`claim`) has those in it whose tokens name it."""

    name: PrincipalName
    source: Literal["api", "claim"] = "api"


class RenameGroup(RequestBody):
    """The new name."""

    name: PrincipalName


class ShownGroup(BaseModel):
    """A group."""

    id: str
    object: Literal["group"] = "group"
    name: str
    source: GroupSource
    external_id: str | None
    created_at: int


class GroupList(ListPage[ShownGroup]):
    """A page of groups, the newest first unless asked otherwise."""


class PersonInGroup(BaseModel):
    """Somebody who is in a group."""

    object: Literal["group.member"] = "group.member"
    user_id: str


class PeopleOfGroup(ListPage[PersonInGroup]):
    """A page of those who are in a group, by user id."""


class PeopleQuery(BaseModel):
    """The request for up to `limit` users that follow the user `after`."""

    limit: int = Field(DEFAULT_PEOPLE, ge=1, le=MOST_PEOPLE)
    after: str = ""


_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": PersonInGroup}}


@router.post("/v1/groups", status_code=201, summary="Create a group")
async def create_group(body: CreateGroup, groups: GroupsDep, admin: AdminDep) -> ShownGroup:
    """Create a group in the tenant of the administrator."""
    return _show(await groups.create(admin.tenant, body.name, GroupSource(body.source)))


@router.get("/v1/groups", summary="List groups")
async def list_groups(groups: GroupsDep, caller: CallerDep, page: Annotated[PageQuery, Query()]) -> GroupList:
    """Return all groups to administrators, and to others those that they are in."""
    found, has_more = await groups.page(caller, page)
    return GroupList.of([_show(group) for group in found], [group.id for group in found], has_more=has_more)


@router.get(GROUP, summary="Retrieve a group")
async def retrieve_group(group_id: str, groups: GroupsDep, caller: CallerDep) -> ShownGroup:
    """Return one group; for administrators, and for those who are in it."""
    return _show(await groups.find(caller, group_id))


@router.patch(GROUP, summary="Rename a group")
async def rename_group(group_id: str, body: RenameGroup, groups: GroupsDep, admin: AdminDep) -> ShownGroup:
    """Give a group another name; what comes from a directory or from tokens is renamed there."""
    return _show(await groups.rename(admin, group_id, body.name))


@router.delete(GROUP, summary="Delete a group")
async def delete_group(group_id: str, groups: GroupsDep, admin: AdminDep) -> Deleted:
    """Delete a group, and with it the rights of those in it; refused where it alone owns a base or an agent."""
    await groups.delete(admin.tenant, group_id)
    return Deleted(id=group_id, object="group.deleted")


@router.get(f"{GROUP}/members", summary="List who is in a group")
async def list_people_of_group(
    group_id: str, groups: GroupsDep, admin: AdminDep, page: Annotated[PeopleQuery, Query()]
) -> PeopleOfGroup:
    """Return a page of users."""
    found, has_more = await groups.members(admin, group_id, page.after, page.limit)
    return PeopleOfGroup.of([PersonInGroup(user_id=user_id) for user_id in found], found, has_more=has_more)


@router.put(GROUP_MEMBER, summary="Put a user into a group", responses=_CREATED)
async def put_into_group(
    group_id: str, user_id: GroupUserId, response: Response, groups: GroupsDep, admin: AdminDep
) -> PersonInGroup:
    """Put a user into a group of this API: 201, or 200 where they were in it."""
    response.status_code = 201 if await groups.put_in(admin, group_id, user_id) else 200
    return PersonInGroup(user_id=user_id)


@router.delete(GROUP_MEMBER, summary="Take a user out of a group")
async def take_out_of_group(group_id: str, user_id: GroupUserId, groups: GroupsDep, admin: AdminDep) -> Deleted:
    """Take a user out of a group of this API; what they had by it is lost, in running streams within seconds."""
    await groups.take_out(admin, group_id, user_id)
    return Deleted(id=user_id, object="group.member.deleted")


def _show(group: Group) -> ShownGroup:
    shown = group.model_dump(exclude={"tenant", "created_at"})
    return ShownGroup(**shown, created_at=unix_seconds(group.created_at))
