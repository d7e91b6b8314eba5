"""The library's storage over the directory of one tenant."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import orjson
from scim2_models import (
    ConflictException,
    GroupMembership,
    InvalidValueException,
    Meta,
    NotFoundException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    ResponseParameters,
    ScimFilter,
    SearchRequest,
    UniquenessException,
)
from scim2_server.storage import AsyncScimStorage, SearchPage

from backend.groups.domain import Group as StoredGroup
from backend.groups.domain import GroupSource, name_group
from backend.groups.services import FindOwned
from backend.identity.domain import is_principal
from backend.scim.domain import (
    DirectoryGroup,
    DirectoryUser,
    GroupChange,
    NoSuchMember,
    Sought,
    StaleVersion,
)
from backend.scim.protocol.resources import FullUser, GroupResource, MemberOfGroup
from backend.scim.protocol.searching import narrow
from backend.scim.sql.store import SqlDirectoryStore
from shared.clock import Clock
from shared.errors import Conflict, NotFound
from shared.ids import IdPrefix, new_id

_USER_COLUMNS = frozenset({"id", "key", "external_id", "active"})
_GROUP_COLUMNS = frozenset({"id", "external_id", "member_id"})
_NEVER_STORED = {"id", "meta", "groups", "password", "user_name", "external_id"}


class _Wanted(NamedTuple):
    """A part of a search over resources of one type."""

    sought: "ScimFilter[Any] | None"
    start: int
    most: int | None

    def names(self, attribute: str) -> bool:
        """Say whether the filter may look at an attribute."""
        return self.sought is not None and attribute in str(self.sought).lower()


class DirectoryStorage(AsyncScimStorage):
    """Reads and writes users and groups of one tenant; `find_owned` returns what a group alone owns."""

    def __init__(self, store: SqlDirectoryStore, tenant: str, find_owned: FindOwned, clock: Clock) -> None:
        self._store = store
        self._tenant = tenant
        self._find_owned = find_owned
        self._clock = clock

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        """Return a user or a group."""
        sought = Sought(self._tenant, {"id": resource_id})
        if resource_type.id == "User":
            found = await self._show_users((await self._store.users(sought))[1])
        else:
            found = [_show_group(each) for each in (await self._store.groups(sought, with_members=True))[1]]
        if not found:
            raise NotFoundException(detail=f"There is no {resource_type.id} '{resource_id}'.")
        return found[0]

    async def search(
        self, resource_types: list[ResourceType], search_request: SearchRequest[Any], *, position: Any = None
    ) -> SearchPage:
        """Return a page: users first, then groups."""
        start, left, total = search_request.start_index_0 or 0, search_request.count, 0
        found: list[Resource[Any]] = []
        for each in resource_types:
            wanted = _Wanted(search_request.filter, max(start - total, 0), left)
            some, resources = await (self._users(wanted) if each.id == "User" else self._groups(wanted))
            total, left = total + some, left - len(resources) if left is not None else None
            found += resources
        return SearchPage(total, found)

    async def _users(self, wanted: _Wanted) -> tuple[int, Sequence[Resource[Any]]]:
        first = narrow(wanted.sought, _USER_COLUMNS)
        if first.is_whole:
            sought = Sought(self._tenant, first.equal, wanted.start, wanted.most)
            total, found = await self._store.users(sought)
            return total, await self._show_users(found)
        _, found = await self._store.users(Sought(self._tenant, first.equal))
        shown = await self._show_users(found, with_groups=wanted.names("groups"))
        matching = await asyncio.to_thread(_match, wanted, shown)
        page = {str(each.id) for each in _cut(wanted, matching)}
        return len(matching), await self._show_users([each for each in found if each.id in page])

    async def _groups(self, wanted: _Wanted) -> tuple[int, Sequence[Resource[Any]]]:
        first = narrow(wanted.sought, _GROUP_COLUMNS)
        if first.is_whole:
            sought = Sought(self._tenant, first.equal, wanted.start, wanted.most)
            total, found = await self._store.groups(sought, with_members=True)
            return total, [_show_group(each) for each in found]
        with_members = wanted.names("members")
        _, found = await self._store.groups(Sought(self._tenant, first.equal), with_members=with_members)
        matching = await asyncio.to_thread(lambda: _match(wanted, [_show_group(each) for each in found]))
        page = _cut(wanted, matching)
        if with_members:
            return len(matching), page
        ids = [str(each.id) for each in page]
        members = await self._store.members(ids)
        shown = (each._replace(members=members.get(each.group.id, ())) for each in found if each.group.id in {*ids})
        return len(matching), [_show_group(each) for each in shown]

    async def _show_users(self, found: Sequence[DirectoryUser], *, with_groups: bool = True) -> list[Resource[Any]]:
        groups = await self._store.groups_of([user.id for user in found] if with_groups else [])
        pairs = [(user, groups.get(user.id, ())) for user in found]
        if len(pairs) <= _FEW:
            return [_show_user(*each) for each in pairs]
        return await asyncio.to_thread(lambda: [_show_user(*each) for each in pairs])

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        """Store a user, who is active unless said otherwise, or a group."""
        if resource_type.id == "User":
            given = cast(Any, resource)
            active = given if given.active is not None else given.model_copy(update={"active": True})
            user = self._new_user(active, new_id(IdPrefix.DIRECTORY_USER), version=1)
            if not await self._store.create_user(user):
                raise UniquenessException(detail=f"There is a user '{user.user_id}'.")
            return await self.get(resource_type, user.id)
        async with _told():
            change = self._change(cast(Any, resource), new_id(IdPrefix.GROUP), expected=0)
            if not await self._store.create_group(change):
                raise UniquenessException(detail=f"There is a group '{change.group.name}'.")
        return await self.get(resource_type, change.group.id)

    async def update(
        self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None
    ) -> Resource[Any]:
        """Replace a user or a group."""
        expected, resource_id = _number(expected_version), str(resource.id)
        async with _told():
            if resource_type.id == "User":
                user = self._new_user(cast(Any, resource), resource_id, version=expected + 1)
                await self._store.change_user(user, expected)
            else:
                await self._store.change_group(self._change(cast(Any, resource), resource_id, expected))
        return await self.get(resource_type, resource_id)

    async def delete(
        self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None
    ) -> None:
        """Delete a user or a group."""
        expected = _number(expected_version)
        async with _told():
            if resource_type.id == "User":
                await self._store.delete_user(self._tenant, resource_id, expected)
                return
            if owned := await self._find_owned(self._tenant, name_group(resource_id)):
                shown = ", ".join(owned[:50])
                raise ConflictException(detail=f"This group alone owns some things; give them another owner: {shown}.")
            await self._store.delete_group(self._tenant, resource_id, expected)

    def _new_user(self, resource: FullUser, user_id: str, version: int) -> DirectoryUser:
        now = self._clock.now()
        name = _require_name(resource.user_name, "userName")
        return DirectoryUser(
            id=user_id,
            tenant=self._tenant,
            user_id=name,
            external_id=resource.external_id,
            active=resource.active is not False,
            resource=orjson.dumps(resource.model_dump(exclude=_NEVER_STORED)).decode(),
            version=version,
            created_at=resource.meta.created if resource.meta and resource.meta.created else now,
            changed_at=now,
        )

    def _change(self, resource: GroupResource, group_id: str, expected: int) -> GroupChange:
        now = self._clock.now()
        stored = StoredGroup(
            id=group_id,
            tenant=self._tenant,
            name=_require_name(resource.display_name, "displayName"),
            source=GroupSource.SCIM,
            created_at=now,
            external_id=resource.external_id,
        )
        member_ids = frozenset(str(member.value) for member in resource.members or ())
        return GroupChange(stored, expected, now, member_ids)


_FEW = 100
"""So many resources are made on the event loop, more in a thread."""


@asynccontextmanager
async def _told() -> AsyncGenerator[None]:
    """Raise the library's exceptions for those of the store."""
    try:
        yield
    except NotFound as error:
        raise NotFoundException(detail=error.message) from None
    except StaleVersion:
        raise PreconditionFailedException(detail="Somebody else has changed it meanwhile.") from None
    except NoSuchMember:
        raise InvalidValueException(detail="A member must be the id of a User of this directory.") from None
    except Conflict as error:
        raise UniquenessException(detail=error.message) from None


def _require_name(name: str | None, attribute: str) -> str:
    if name is None or not is_principal(name):
        raise InvalidValueException(detail=f"{attribute} must have 1 to 256 printable characters, none around blank.")
    return name


def _number(version: str | None) -> int:
    """Return the number in a version that was shown, such as `W/"3"`."""
    digits = (version or "").removeprefix("W/").strip('"')
    return int(digits) if digits.isdecimal() else -1


def _match(wanted: _Wanted, resources: Sequence[Resource[Any]]) -> list[Resource[Any]]:
    return [each for each in resources if wanted.sought is None or wanted.sought.match(each)]


def _cut(wanted: _Wanted, matching: Sequence[Resource[Any]]) -> Sequence[Resource[Any]]:
    return matching[wanted.start :][: wanted.most]


def _show_user(user: DirectoryUser, groups: Sequence[StoredGroup]) -> Resource[Any]:
    shown = FullUser.model_validate(orjson.loads(user.resource))
    shown.id, shown.user_name, shown.external_id = user.id, user.user_id, user.external_id
    if groups:
        shown.groups = [
            GroupMembership.model_validate({"value": each.id, "$ref": f"Groups/{each.id}", "display": each.name})
            for each in groups
        ]
    shown.meta = Meta(
        resource_type="User", created=user.created_at, last_modified=user.changed_at, version=f'W/"{user.version}"'
    )
    return shown


def _show_group(found: DirectoryGroup) -> Resource[Any]:
    group = found.group
    shown = GroupResource(id=group.id, display_name=group.name, external_id=group.external_id)
    if found.members:
        shown.members = [
            MemberOfGroup.model_construct(value=each.id, ref=f"Users/{each.id}", type="User") for each in found.members
        ]
    shown.meta = Meta(
        resource_type="Group", created=group.created_at, last_modified=found.changed_at, version=f'W/"{found.version}"'
    )
    return shown
