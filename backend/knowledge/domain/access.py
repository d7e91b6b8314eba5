"""The permissions that a role gives on a knowledge base."""

from collections.abc import Sequence

from backend.knowledge.domain.knowledge import Binding, MemberRole
from shared.errors import PermissionDenied
from shared.models.execution import AccessMode


def strictest_mode(bindings: Sequence[Binding]) -> AccessMode:
    """Return the mode of a turn over these bases; one restricted base restricts it whole."""
    restricted = any(binding.role.access_mode is AccessMode.RESTRICTED for binding in bindings)
    return AccessMode.RESTRICTED if restricted else AccessMode.FULL


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
