"""What tests of turns ask of a backend, and what they look at afterwards."""

import asyncio
from typing import Any

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.responses import Item, StoredResponse
from backend.conversations.services.conversations import ItemQuery
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import MemberRole
from shared.models.messages import AssistantMessage
from tests.contract.knowledge_cases import make_base
from tests.fakes.openai_house import ADA, TurnHouse

SUFFIX = "\n\n<time>2026-11-22 09:30 Europe/Berlin</time>"
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


async def ask(house: TurnHouse, *items: dict[str, Any], **fields: Any) -> StoredResponse:
    return await house.ask(fields.pop("caller", ADA), input=list(items), **fields)


def texts(house: TurnHouse, place: int = -1) -> list[str]:
    """Return the texts of the messages that a turn sent as history."""
    return [str(m.text if isinstance(m, AssistantMessage) else m.content) for m in house.sent[place].history]


def searching(*base_ids: str) -> dict[str, object]:
    return {"type": "file_search", "vector_store_ids": list(base_ids)}


async def add_base(house: TurnHouse, base_id: str, role: MemberRole = MemberRole.OWNER) -> None:
    base = make_base(base_id, tenant="default", name=f"Handbook {base_id}")
    await house.knowledge.create_base(base, "owner")
    await house.knowledge.set_member(base_id, ADA.user_id, role)


async def share(house: TurnHouse, conversation_id: str, user: Caller, role: str = "writer") -> bool:
    members = house.members
    return await members.set(ADA, conversation_id, user.user_id, ConversationRole(role))


async def ended(house: TurnHouse, response_id: str) -> str:
    response = await house.services.responses.wait_until_ended(await house.services.responses.find(ADA, response_id))
    return response.status.value


async def run_waiting(house: TurnHouse) -> None:
    """Begin what waits, one turn after another."""
    while house.state.waiting:
        await house.services.waiting.step()
    await asyncio.sleep(0)


async def items_of(house: TurnHouse, conversation_id: str) -> tuple[Item, ...]:
    query = ItemQuery(limit=1000, descending=False, after=None)
    return (await house.caller_conversations.items(ADA, conversation_id, query)).items


async def pop(house: TurnHouse, conversation_id: str, count: int = 1) -> list[str]:
    """Take out so many of the last items; return their types."""
    taken: list[str] = []
    for _ in range(count):
        newest = (await items_of(house, conversation_id))[-1]
        await house.caller_conversations.remove_item(ADA, conversation_id, newest.id)
        taken.append(str(newest.body["type"]))
    return taken
