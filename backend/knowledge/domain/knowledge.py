"""Knowledge bases, the roles of their members and what each may do, their documents, and what these consist of."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from backend.search.domain.filters import Attributes
from shared.errors import PermissionDenied
from shared.models.execution import AccessMode
from shared.models.safe_summary import LEAST_SUPPORT, BaseContent, RestrictedGrade
from shared.models.values import Value


class MemberRole(StrEnum):
    """What a member may do with a base."""

    OWNER = "owner"
    EDITOR = "editor"
    READER = "reader"
    RESTRICTED_ANALYST = "restricted_analyst"

    @property
    def access_mode(self) -> AccessMode:
        """FULL for the roles that are named here, which may read text; RESTRICTED for every other role."""
        reads = self in (MemberRole.OWNER, MemberRole.EDITOR, MemberRole.READER)
        return AccessMode.FULL if reads else AccessMode.RESTRICTED

    @property
    def rights(self) -> int:
        """How far the role goes: what a role with more may do, one with fewer may not."""
        return _RIGHTS[self]

    @property
    def may_write(self) -> bool:
        """Whether documents and description may be changed."""
        return self in (MemberRole.OWNER, MemberRole.EDITOR)


_RIGHTS = {
    MemberRole.RESTRICTED_ANALYST: 0,
    MemberRole.READER: 1,
    MemberRole.EDITOR: 2,
    MemberRole.OWNER: 3,
}


class KnowledgeBase(Value):
    """A base as its owner describes it.

    `version` grows with every change of its documents and of what decides on what leaves for restricted members:
    `restricted_translation`, which allows summaries of its text in another language; `restricted_grade`, without which
    a base is open; `support`, the number of documents in which a word must stand to say nothing of one of them, for
    which nobody has chosen one where it is None; and `content`. `metadata` is the owner's own, for nobody else's eyes
    than full members'; `last_active_at` is when it was last searched or changed as a vector store. `embed` allows that
    its text is sent to the operator's embedder, for search by meaning.
    """

    id: str
    tenant: str
    name: str
    summary: str
    topics: tuple[str, ...]
    routing_hint: str
    routing_keywords: tuple[str, ...]
    version: int
    created_at: datetime
    restricted_translation: bool = False
    metadata: dict[str, str] = Field(default={})
    last_active_at: datetime | None = None
    embed: bool = True
    restricted_grade: RestrictedGrade | None = None
    support: int | None = None
    content: BaseContent = BaseContent.DOCUMENTS


class Binding(Value):
    """A base and the role in which the caller uses it: the strictest of those that they have.

    `via` is the id of the group by which they have it; None where it is their own.
    """

    base: KnowledgeBase
    role: MemberRole
    via: str | None = None


class Document(Value):
    """A document of a base; `name` is what it was put under, and no other document of its base has it.

    `file_id` and `filename` are those of the uploaded file that it was read from, where there is one; several files of
    one base may have the same filename. `notes` say what a reader of it sees and its text does not hold.
    `reader_version` is that of the reader that made its text, None where it is not known; `charset` is the
    encoding that its client told. `unread_pictures` counts pages and pictures whose text an engine could still find.
    """

    id: str
    knowledge_base_id: str
    name: str
    media_type: str
    sha256: str
    size_bytes: int
    chunk_count: int
    created_at: datetime
    file_id: str | None = None
    filename: str | None = None
    attributes: Attributes = Field(default={})
    notes: tuple[str, ...] = ()
    reader_version: int | None = None
    charset: str | None = None
    unread_pictures: int = 0

    @property
    def source_id(self) -> str:
        """The id that results and citations show."""
        return self.file_id or self.id

    @property
    def title(self) -> str:
        """The name that results and citations show."""
        return self.filename or self.name


def strictest_mode(bindings: Sequence[Binding]) -> AccessMode:
    """Return the mode of a turn over these bases; one restricted base restricts it whole."""
    restricted = any(binding.role.access_mode is AccessMode.RESTRICTED for binding in bindings)
    return AccessMode.RESTRICTED if restricted else AccessMode.FULL


def is_too_small(base: KnowledgeBase, documents: int) -> bool:
    """Say whether a base has too few documents for its support, so that no word of it speaks of several."""
    return documents < (base.support or LEAST_SUPPORT)


def is_strict(bindings: Sequence[Binding], documents: Mapping[str, int]) -> bool:
    """Say whether only coded findings may leave a search of these bases; one strict base suffices.

    So is one that has fewer documents than the support that its owner has chosen. `documents` counts them by base.
    """
    bases = [binding.base for binding in bindings]
    return any(
        base.restricted_grade is RestrictedGrade.STRICT
        or (base.support is not None and is_too_small(base, documents.get(base.id, 0)))
        for base in bases
    )


def greatest_support(bindings: Sequence[Binding]) -> int:
    """Return the support that a search of these bases asks for."""
    return max((LEAST_SUPPORT, *(binding.base.support or 0 for binding in bindings)))


def has_records(bindings: Sequence[Binding]) -> bool:
    """Say whether one of these bases holds records."""
    return any(binding.base.content is BaseContent.RECORDS for binding in bindings)


def require_read(binding: Binding) -> None:
    """Require a role that may read text, documents and members.

    Raises:
        PermissionDenied: the member is restricted.
    """
    if binding.role.access_mode is not AccessMode.FULL:
        raise PermissionDenied("Your access to this knowledge base is restricted.")


def require_write(binding: Binding) -> None:
    """Require a role that may change documents and description.

    Raises:
        PermissionDenied: the member is neither owner nor editor.
    """
    if not binding.role.may_write:
        raise PermissionDenied("Only owners and editors may change this knowledge base.")


def require_owner(binding: Binding) -> None:
    """Require the role that may change members and delete the base.

    Raises:
        PermissionDenied: the member is no owner.
    """
    if binding.role is not MemberRole.OWNER:
        raise PermissionDenied("Only owners may do this.")
