"""Creating, describing and deleting knowledge bases, and when each was used."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pydantic import Field

from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import Caller
from backend.knowledge.domain.attachments import Attachment
from backend.knowledge.domain.description_rules import LeftOut
from backend.knowledge.domain.knowledge import (
    Binding,
    KnowledgeBase,
    MemberRole,
    is_too_small,
    require_owner,
    require_write,
)
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from shared.clock import Clock
from shared.errors import NotFound
from shared.ids import IdPrefix, new_id
from shared.models.safe_summary import BaseContent, RestrictedGrade
from shared.models.values import Value


class Description(Value):
    """The fields of a base that owners and editors write; without a grade it has the operator's default."""

    name: str
    summary: str
    topics: tuple[str, ...]
    routing_hint: str
    routing_keywords: tuple[str, ...]
    restricted_translation: bool = False
    metadata: dict[str, str] = Field(default={})
    embed: bool = True
    restricted_grade: RestrictedGrade | None = None
    support: int | None = None
    content: BaseContent = BaseContent.DOCUMENTS

    def with_grade(self, default: RestrictedGrade) -> "Description":
        """Return it with a grade."""
        return self.model_copy(update={"restricted_grade": self.restricted_grade or default})


_OF_OWNERS = frozenset({"restricted_translation", "restricted_grade", "support", "content", "embed"})


class KnowledgeCatalogue:
    """The bases of a caller."""

    def __init__(
        self, store: KnowledgeStore, descriptions: SafeDescriptions, clock: Clock, default_grade: RestrictedGrade
    ) -> None:
        self._store = store
        self._descriptions = descriptions
        self._clock = clock
        self._default_grade = default_grade

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
            **dict(description.with_grade(self._default_grade)),
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
        (shown,) = await self._descriptions.show([await find_binding(self._store, caller, base_id)])
        return shown

    async def find_named(self, caller: Caller, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
        """Return the named bases, or all of the caller's, with the parts of their descriptions that they may see.

        Raises:
            NotFound: the caller is not a member of a named base; `param` says which of them it is.
        """
        found = await self._store.bindings(caller.tenant, caller.user_id, base_ids)
        mine = {binding.base.id for binding in found}
        for place, base_id in enumerate(base_ids or ()):
            if base_id not in mine:
                raise NotFound("There is no such knowledge base.", param=f"knowledge_base_ids[{place}]")
        return await self._descriptions.show(found)

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
        shown = await self._descriptions.show(ordered[start : start + limit])
        return shown, len(ordered) > start + limit

    async def describe(self, caller: Caller, base_id: str, changes: dict[str, object]) -> Binding:
        """Change fields of a `Description`; one that has its value already is not written, for another may change it.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller may not write, or is no owner and changes a field of owners.
        """
        binding = await find_binding(self._store, caller, base_id)
        require_write(binding)
        base = KnowledgeBase.model_validate({**dict(binding.base), **changes})
        changed = {name: getattr(base, name) for name in changes if getattr(base, name) != getattr(binding.base, name)}
        if changed.keys() & _OF_OWNERS:
            require_owner(binding)
        if changed:
            await self._store.update_base(base_id, changed)
        return await find_binding(self._store, caller, base_id)

    async def find_left_out(self, binding: Binding) -> Mapping[str, LeftOut] | None:
        """Return the fields that restricted members are not shown, and why; None for a caller who may not change them.

        Raises:
            Unavailable: the database is away.
        """
        return await self._descriptions.places_left_out(binding.base) if binding.role.may_write else None

    async def is_too_small(self, binding: Binding) -> bool:
        """Say whether a base has too few documents for its support."""
        counted = await self._store.count_documents([binding.base.id])
        return is_too_small(binding.base, counted.get(binding.base.id, 0))

    async def delete(self, caller: Caller, base_id: str) -> None:
        """Delete a base with all that is in it.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is not an owner.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        await self._store.delete_base(base_id)


WRITE_ACTIVITY_SECONDS = 10.0


class ActiveBases:
    """Notes uses of bases; what a process has not written when it is killed is lost, and nothing depends on it."""

    def __init__(self, store: AttachmentStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unwritten: dict[str, datetime] = {}

    def note(self, base_ids: Sequence[str]) -> None:
        """Note that these bases are used now."""
        self._unwritten |= dict.fromkeys(base_ids, self._clock.now())

    def last_use(self, base_id: str) -> datetime | None:
        """Return when this process last noted a use that is not written yet."""
        return self._unwritten.get(base_id)

    async def write(self) -> None:
        """Write down the uses since the last time.

        Raises:
            Unavailable: the database is away. The uses are written the next time.
        """
        uses = dict(self._unwritten)
        if uses:
            await self._store.note_active(list(uses))
        self._unwritten = {base_id: at for base_id, at in self._unwritten.items() if uses.get(base_id) != at}
