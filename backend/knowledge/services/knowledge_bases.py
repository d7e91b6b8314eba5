"""Creating, describing and deleting knowledge bases."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import Field

from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_owner, require_write
from backend.knowledge.domain.attachments import Attachment
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from backend.knowledge.domain.safe_description import LeftOut
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from shared.clock import Clock
from shared.errors import NotFound
from shared.ids import IdPrefix, new_id
from shared.models.values import Value


class Description(Value):
    """The fields of a base that owners and editors write."""

    name: str
    summary: str
    topics: tuple[str, ...]
    routing_hint: str
    routing_keywords: tuple[str, ...]
    restricted_translation: bool = False
    metadata: dict[str, str] = Field(default={})
    embed: bool = True


class KnowledgeCatalogue:
    """The bases of a caller."""

    def __init__(self, store: KnowledgeStore, descriptions: SafeDescriptions, clock: Clock) -> None:
        self._store = store
        self._descriptions = descriptions
        self._clock = clock

    async def create(
        self,
        caller: Caller,
        description: Description,
        claim: KeyClaim | None = None,
        attached: Callable[[str], Sequence[Attachment]] | None = None,
    ) -> Binding:
        """Create a base that the caller owns; its id is what a claim has created.

        The files that `attached` returns for this id are queued with it.

        Raises:
            KeyHeld: another request has used the key of the claim.
        """
        base = KnowledgeBase(
            id=new_id(IdPrefix.KNOWLEDGE_BASE),
            tenant=caller.tenant,
            version=0,
            created_at=self._clock.now(),
            **dict(description),
        )
        its_claim = claim.of(base.id) if claim is not None else None
        await self._store.create_base(
            base, caller.user_id, its_claim, attached(base.id) if attached is not None else ()
        )
        return Binding(base=base, role=MemberRole.OWNER)

    async def find(self, caller: Caller, base_id: str) -> Binding:
        """Return a base, with the parts of its description that the caller may see.

        Raises:
            NotFound: the caller is not a member.
        """
        (shown,) = await self._descriptions.shown([await find_binding(self._store, caller, base_id)])
        return shown

    async def named(self, caller: Caller, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
        """Return the named bases, or all of the caller's, with the parts of their descriptions that they may see.

        Raises:
            NotFound: the caller is not a member of a named base; `param` says which of them it is.
        """
        found = await self._store.bindings(caller.tenant, caller.user_id, base_ids)
        mine = {binding.base.id for binding in found}
        for place, base_id in enumerate(base_ids or ()):
            if base_id not in mine:
                raise NotFound("There is no such knowledge base.", param=f"knowledge_base_ids[{place}]")
        return await self._descriptions.shown(found)

    async def page(
        self, caller: Caller, *, after: str | None, limit: int, descending: bool
    ) -> tuple[tuple[Binding, ...], bool]:
        """Return up to `limit` of the caller's bases by age and id, and whether there are more.

        Raises:
            NotFound: `after` is the id of none of them.
        """
        mine = await self._store.bindings(caller.tenant, caller.user_id, None)
        ordered = sorted(mine, key=lambda found: (found.base.created_at, found.base.id), reverse=descending)
        ids = [found.base.id for found in ordered]
        if after is not None and after not in ids:
            raise NotFound("There is no such knowledge base.", param="after")
        start = ids.index(after) + 1 if after is not None else 0
        shown = await self._descriptions.shown(ordered[start : start + limit])
        return shown, len(ordered) > start + limit

    async def describe(self, caller: Caller, base_id: str, changes: dict[str, object]) -> Binding:
        """Change fields of a `Description`.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller may not write, or is no owner and changes
                `restricted_translation` or `embed`.
        """
        binding = await find_binding(self._store, caller, base_id)
        require_write(binding)
        base = KnowledgeBase.model_validate({**dict(binding.base), **changes})
        before = binding.base
        if (base.restricted_translation, base.embed) != (before.restricted_translation, before.embed):
            require_owner(binding)
        await self._store.update_base(base)
        return await find_binding(self._store, caller, base_id)

    async def left_out(self, binding: Binding) -> Mapping[str, LeftOut] | None:
        """Return the fields that restricted members are not shown, and why; None for a caller who may not change them.

        Raises:
            Unavailable: the database is away.
        """
        return await self._descriptions.places_left_out(binding.base) if binding.role.may_write else None

    async def delete(self, caller: Caller, base_id: str) -> None:
        """Delete a base with all that is in it.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is not an owner.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        await self._store.delete_base(base_id)
