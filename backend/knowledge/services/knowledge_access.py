"""The access of callers to bases: their membership decides, which owners set, and for others a base does not exist."""

from collections.abc import Collection, Mapping
from itertools import chain

from backend.groups.services import GroupNames
from backend.identity.domain import Caller
from backend.knowledge.domain.file_indexes import FILE_INDEX_ID_START
from backend.knowledge.domain.knowledge import Binding, MemberRole, require_owner, require_read
from backend.knowledge.domain.labels import TURN_ID_START, Access, Label, Labels, may_read, without_turns
from backend.knowledge.ports.knowledge import KnowledgeStore, LabelsOfTurns, OpenFileIndexes
from shared.errors import Conflict, NotFound
from shared.models.execution import AccessMode


async def find_binding(store: KnowledgeStore, caller: Caller, base_id: str) -> Binding:
    """Return the base and the caller's role in it.

    Raises:
        NotFound: there is no such base in the caller's tenant, or the caller is not a member.
    """
    found = await store.bindings(caller.tenant, caller.user_id, [base_id])
    if not found:
        raise NotFound("There is no such knowledge base.", param="knowledge_base_id")
    return found[0]


class LabelAccess:
    """Tells what callers may read today of what labels name.

    Bases are read by membership, files of agents by their agents, and turns by their labels of today.
    """

    def __init__(
        self, store: KnowledgeStore, open_file_indexes: OpenFileIndexes, labels_of_turns: LabelsOfTurns
    ) -> None:
        self._store = store
        self._open_file_indexes = open_file_indexes
        self._labels_of_turns = labels_of_turns

    async def of(self, caller: Caller, labels: Collection[Label]) -> Access:
        """Return the mode that the caller has today in each of the labelled bases that they may use.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        turn_ids = sorted({label.base_id for label in labels if label.base_id.startswith(TURN_ID_START)})
        found: Mapping[str, Labels] = await self._labels_of_turns(turn_ids) if turn_ids else {}
        # Who names a turn names all that its label named then; what was added since is looked at here.
        turns: dict[str, Labels] = {turn_id: without_turns(own) for turn_id, own in found.items()}
        named = (*without_turns(labels), *chain.from_iterable(turns.values()))
        modes = await self._modes(caller, {label.base_id for label in named})
        readable: list[str] = [turn_id for turn_id, own in turns.items() if may_read(modes, own)]
        return modes | dict.fromkeys(readable, AccessMode.RESTRICTED)

    async def _modes(self, caller: Caller, named: Collection[str]) -> dict[str, AccessMode]:
        """Return the modes in bases, and in file indexes of agents."""
        file_indexes = sorted(base_id for base_id in named if base_id.startswith(FILE_INDEX_ID_START))
        bases = sorted(set(named).difference(file_indexes))
        found = await self._store.bindings(caller.tenant, caller.user_id, bases) if bases else ()
        opened = await self._open_file_indexes(caller.tenant, caller.user_id, file_indexes) if file_indexes else ()
        modes = {binding.base.id: binding.role.access_mode for binding in found}
        return modes | dict.fromkeys(opened, AccessMode.FULL)


class KnowledgeMembers:
    """Members of bases; only owners change them, restricted members do not see them."""

    def __init__(self, store: KnowledgeStore, groups: GroupNames) -> None:
        self._store = store
        self._groups = groups

    async def all(self, caller: Caller, base_id: str) -> Mapping[str, MemberRole]:
        """Return the members' roles by user id, or by what stands for a group (`name_group`).

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        require_read(await find_binding(self._store, caller, base_id))
        return await self._store.members(base_id)

    async def find(self, caller: Caller, base_id: str, user_id: str) -> MemberRole:
        """Return one member's role.

        Raises:
            NotFound: the caller or the user is not a member.
            PermissionDenied: the caller is restricted.
        """
        role = (await self.all(caller, base_id)).get(user_id)
        if role is None:
            raise NotFound("There is no such member.", param="user_id")
        return role

    async def set(self, caller: Caller, base_id: str, user_id: str, role: MemberRole) -> bool:
        """Add a member or change their role; return whether the member is new.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is not an owner.
            Conflict: no owner would be left, or the caller would be none any more by a group that they are in.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        if role is not MemberRole.OWNER and await self._groups.is_in(caller, user_id):
            raise Conflict(
                "You are in this group, and of several roles the strictest counts: you would be an owner no more.",
                param="role",
            )
        is_new = user_id not in await self._store.members(base_id)
        await self._store.set_member(base_id, user_id, role)
        return is_new

    async def remove(self, caller: Caller, base_id: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            NotFound: the caller or the user is not a member.
            PermissionDenied: the caller is not an owner.
            Conflict: no owner would be left.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        if not await self._store.remove_member(base_id, user_id):
            raise NotFound("There is no such member.", param="user_id")
