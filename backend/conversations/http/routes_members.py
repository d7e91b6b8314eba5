"""The members of conversations."""

from typing import Annotated, Literal

from fastapi import Depends, Path, Response
from pydantic import BaseModel

from backend.conversations.domain.members import ConversationRole
from backend.conversations.services.conversation_members import ConversationMembers
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody
from backend.identity.http.caller import CallerDep

MembersDep = Annotated[ConversationMembers, Depends(service_of(ConversationMembers))]
router = new_router("Conversations")

MEMBERS = "/v1/conversations/{conversation_id}/members"
MEMBER = f"{MEMBERS}/{{user_id}}"
ConversationUserId = Annotated[PrincipalName, Path()]


class SetConversationMember(RequestBody):
    """The new role of a member."""

    role: Literal["owner", "writer", "reader"]


class ShownConversationMember(BaseModel):
    """A member of a conversation."""

    object: Literal["conversation.member"] = "conversation.member"
    user_id: str
    role: ConversationRole


class ConversationMemberList(ListPage[ShownConversationMember]):
    """All members, by user id, in one page."""

    has_more: bool = False


_CREATED: dict[int | str, dict[str, object]] = {201: {"description": "Created", "model": ShownConversationMember}}


@router.get(MEMBERS, summary="List members of a conversation")
async def list_conversation_members(
    conversation_id: str, members: MembersDep, caller: CallerDep
) -> ConversationMemberList:
    """Return all members by user id; for members."""
    roles = await members.all(caller, conversation_id)
    shown = [ShownConversationMember(user_id=user_id, role=role) for user_id, role in roles.items()]
    return ConversationMemberList.of(shown, list(roles))


@router.put(MEMBER, summary="Set a member of a conversation", responses=_CREATED)
async def set_conversation_member(
    conversation_id: str,
    user_id: ConversationUserId,
    body: SetConversationMember,
    response: Response,
    members: MembersDep,
    caller: CallerDep,
) -> ShownConversationMember:
    """Add a member (201) or change their role (200); for owners. Who created the conversation stays its owner."""
    role = ConversationRole(body.role)
    is_new = await members.set(caller, conversation_id, user_id, role)
    response.status_code = 201 if is_new else 200
    return ShownConversationMember(user_id=user_id, role=role)


@router.get(MEMBER, summary="Retrieve a member of a conversation")
async def retrieve_conversation_member(
    conversation_id: str, user_id: ConversationUserId, members: MembersDep, caller: CallerDep
) -> ShownConversationMember:
    """Return a member's role; for members."""
    role = await members.find(caller, conversation_id, user_id)
    return ShownConversationMember(user_id=user_id, role=role)


@router.delete(MEMBER, summary="Remove a member of a conversation")
async def remove_conversation_member(
    conversation_id: str, user_id: ConversationUserId, members: MembersDep, caller: CallerDep
) -> Deleted:
    """Remove a member; for owners. What they have said stays."""
    await members.remove(caller, conversation_id, user_id)
    return Deleted(id=user_id, object="conversation.member.deleted")
