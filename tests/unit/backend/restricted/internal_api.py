"""What chat_shell asks of restricted bases, and what it reports."""

from datetime import timedelta
from typing import Any

import httpx2

from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from tests.fakes.http_api import SECRET
from tests.unit.backend.conftest import Members

INTERNAL = "/internal/v1/knowledge"
UNBOUNDED = SearchOptions()
VERSIONS = {"policy_version": "1", "gate_version": "2", "prompt_version": "3", "model": "safe-model"}
RELEASED = {
    "decision": "answer",
    "reason": "risk",
    "summary": "Late bookings are the main risk.",
    "observations": ["Bookings come late."],
    "risks": [],
    "recommended_actions": ["Book earlier."],
    "confidence": "medium",
}


def ticket_for(
    members: Members,
    user_id: str = "rae",
    *more: str,
    seconds: float = 60,
    secret: str = SECRET,
    search: SearchOptions = UNBOUNDED,
) -> str:
    ticket = Ticket(
        user_id=user_id,
        tenant="default",
        conversation_id="conv_1",
        turn_id="resp_1",
        base_ids=(members.base_id, *more),
        search=search,
        expires_at=members.house.clock.now() + timedelta(seconds=seconds),
    )
    return sign_ticket(ticket, secret)


async def ask(members: Members, path: str, ticket: str, **body: object) -> httpx2.Response:
    return await members.chat_shell.post(f"{INTERNAL}/{path}", json={"ticket": ticket, **body})


async def search(members: Members, ticket: str | None = None, query: str = "hotels", **body: Any) -> httpx2.Response:
    sealed = {"query": query, "limit": 24, "whole_below_tokens": 12_000, "sealed": VERSIONS, **body}
    return await ask(members, "search", ticket or ticket_for(members, "ana"), **sealed)


async def sealed_part(members: Members, query: str = "hotels", **body: Any) -> dict[str, Any]:
    answer = await search(members, query=query, **body)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["access_mode"], answer.json()["data"]) == ("restricted", [])
    return answer.json()["sealed"]


def outcome(members: Members, search_id: str | None, **changes: Any) -> dict[str, Any]:
    return {
        "search_id": search_id,
        "knowledge_base_ids": [members.base_id],
        **VERSIONS,
        "decision": "answer",
        "reason": "risk",
        "gate_codes": [],
        "rewrites": 0,
        "latency_ms": 120,
        "chunks_found": 2,
        "chunks_sent": 2,
        "canary_hits": 0,
        "released": RELEASED,
        **changes,
    }


def refusal(members: Members, search_id: str | None, reason: str, **changes: Any) -> dict[str, Any]:
    return outcome(members, search_id, decision="refuse", reason=reason, released=None, **changes)


async def report(members: Members, ticket: str | None = None, **body: Any) -> httpx2.Response:
    return await ask(members, "outcomes", ticket or ticket_for(members, "ana"), **body)
