"""The resources of a directory, as RFC 7643 describes them (8.7.1): its schema of groups knows no names of members."""

from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    URN,
    CaseExact,
    ComplexAttribute,
    EnterpriseUser,
    Mutability,
    Reference,
    Required,
    Resource,
    User,
)

FullUser = User[EnterpriseUser]


class MemberOfGroup(ComplexAttribute):
    """A user in a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(  # pyright: ignore[reportMissingTypeArgument]
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class GroupResource(Resource[Any]):
    """A group."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[MemberOfGroup] | None = None
    Members: ClassVar[type[ComplexAttribute]] = MemberOfGroup


GroupResource.__name__ = "Group"  # by which the library shows it
