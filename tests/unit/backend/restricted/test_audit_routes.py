"""The audit of restricted searches: for administrators, by tenant, page by page, and without a word of a base."""

import httpx2
import orjson
import pytest

from backend.identity.domain import KeyRole
from shared.receipts import SealedReceipt, verify_chain
from tests.fakes.http_api import client_of
from tests.unit.backend.conftest import MANUAL, Members
from tests.unit.backend.restricted.internal_api import (
    RELEASED,
    VERSIONS,
    outcome,
    refusal,
    report,
    sealed_part,
    search,
    ticket_for,
)

AUDIT = "/v1/audit/safe_summaries"
RECEIPTS = "/v1/audit/receipts"


async def admin_of(members: Members, tenant: str = "default") -> httpx2.AsyncClient:
    return client_of(members.app, await members.house.key("root", KeyRole.ADMIN, tenant))


async def test_a_record_tells_all_but_text(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    changes = {"gate_codes": ["figures"], "rewrites": 1, "canary_hits": 3}
    await report(members, **outcome(members, found["search_id"], **changes))
    answer = await (await admin_of(members)).get(AUDIT)
    (record,) = answer.json()["data"]
    left = {"knowledge_base_id": members.base_id, "conversation": 8, "day": 20, "month": 60, "chunks": None}
    assert record == {
        "id": record["id"],
        "object": "safe_summary",
        "created_at": int(members.house.clock.now().timestamp()),
        "user_hash": record["user_hash"],
        "conversation_id": "conv_1",
        "turn_id": "resp_1",
        "search_id": found["search_id"],
        "knowledge_bases": [{"id": members.base_id, "version": 1}],
        "versions": VERSIONS,
        "decision": "answer",
        "reason": "risk",
        "gate_codes": ["figures"],
        "rewrites": 1,
        "latency_ms": 120,
        "chunks_found": 2,
        "chunks_sent": 2,
        "chunks_distinct": 2,
        "canary_hits": 3,
        "is_cached": False,
        "budget_before": [left],
        "budget_after": [{**left, "conversation": 7, "day": 19, "month": 59}],
        "preview": RELEASED["summary"],
        "facts": None,
        "via": None,
    }
    assert '"ana"' not in answer.text
    assert len(record["user_hash"]) == 32


async def test_a_preview_is_a_bounded_beginning_and_refusals_have_none(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    await report(members, **outcome(members, found["search_id"], released={**RELEASED, "summary": "x" * 400}))
    members.house.clock.advance(1)
    await report(members, **refusal(members, None, "verbatim"))
    shown = (await (await admin_of(members)).get(AUDIT, params={"order": "asc"})).json()["data"]
    assert [record["preview"] for record in shown] == ["x" * 200, ""]


async def test_records_come_in_pages_the_newest_first(members: Members) -> None:
    for _ in range(3):
        await report(members, **refusal(members, None, "verbatim"))
        members.house.clock.advance(1)
    admin = await admin_of(members)
    first = (await admin.get(AUDIT, params={"limit": 2})).json()
    assert (len(first["data"]), first["has_more"], first["last_id"]) == (2, True, first["data"][1]["id"])
    assert first["data"][0]["created_at"] > first["data"][1]["created_at"]
    rest = (await admin.get(AUDIT, params={"after": first["last_id"]})).json()
    assert (len(rest["data"]), rest["has_more"]) == (1, False)
    assert (await admin.get(AUDIT, params={"after": "audit_x"})).status_code == 404
    assert (await admin.get(AUDIT, params={"limit": 0})).status_code == 400
    empty = (await admin.get(AUDIT, params={"after": rest["last_id"]})).json()
    assert empty == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}


async def reasons(client: httpx2.AsyncClient, **params: str | int) -> list[str]:
    answer = await client.get(AUDIT, params={"order": "asc", **params})
    assert answer.status_code == 200, answer.text
    return [record["reason"] for record in answer.json()["data"]]


async def test_an_administrator_asks_for_what_one_user_did(members: Members) -> None:
    for user_id, reason in (("ana", "verbatim"), ("ben", "definition"), ("ana", "encoding")):
        await members.owner.put(f"{members.base}/members/{user_id}", json={"role": "restricted_analyst"})
        await report(members, ticket_for(members, user_id), **refusal(members, None, reason))
        members.house.clock.advance(1)
    await search(members, ticket_for(members, "ana", secret="other"))
    admin = await admin_of(members)
    assert await reasons(admin, user_id="ana") == ["verbatim", "encoding"]
    assert await reasons(admin, user_id="ben") == ["definition"]
    for nobody in ("Ana", "olga", "an%"):
        assert await reasons(admin, user_id=nobody) == []
    assert await reasons(admin) == ["verbatim", "definition", "encoding", "bad_ticket"]
    # the same name in another tenant is somebody else
    assert await reasons(await admin_of(members, "elsewhere"), user_id="ana") == []


async def test_filters_hold_together_and_from_page_to_page(members: Members) -> None:
    for reason in ("verbatim", "definition", "verbatim", "encoding", "verbatim"):
        await report(members, **refusal(members, None, reason))
        members.house.clock.advance(1)
    admin = await admin_of(members)
    wanted = {"user_id": "ana", "knowledge_base_id": members.base_id, "reason": "verbatim"}
    first = (await admin.get(AUDIT, params={**wanted, "limit": 2})).json()
    assert ([record["reason"] for record in first["data"]], first["has_more"]) == (["verbatim"] * 2, True)
    rest = (await admin.get(AUDIT, params={**wanted, "limit": 2, "after": first["last_id"]})).json()
    assert ([record["reason"] for record in rest["data"]], rest["has_more"]) == (["verbatim"], False)
    for other in ({"user_id": "olga"}, {"knowledge_base_id": "kb_x"}, {"reason": "risk"}):
        assert await reasons(admin, **{**wanted, **other}) == []
    assert len(await reasons(admin, unknown="x")) == 5


@pytest.mark.parametrize(
    ("param", "value"),
    [("reason", "bored"), ("reason", ""), ("user_id", ""), ("user_id", " ana"), ("knowledge_base_id", "")],
)
async def test_a_wrong_filter_is_named(members: Members, param: str, value: str) -> None:
    answer = await (await admin_of(members)).get(AUDIT, params={param: value})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_whoever_gives_an_unknown_reason_reads_all_that_there_are(members: Members) -> None:
    told = (await (await admin_of(members)).get(AUDIT, params={"reason": "bored"})).json()["error"]["message"]
    for reason in ("risk", "verbatim", "bad_ticket", "gate_blocked_canary"):
        assert reason in told


async def test_an_administrator_sees_their_tenant_and_forged_tickets(members: Members) -> None:
    await report(members, **refusal(members, None, "verbatim"))
    await search(members, ticket_for(members, "ana", secret="other"))
    for tenant, reasons in (("default", {"verbatim", "bad_ticket"}), ("elsewhere", {"bad_ticket"})):
        shown = (await (await admin_of(members, tenant)).get(AUDIT)).json()["data"]
        assert {record["reason"] for record in shown} == reasons


async def test_nobody_else_reads_it(members: Members) -> None:
    for client in (members.owner, members.restricted, members.chat_shell, client_of(members.app)):
        assert (await client.get(AUDIT)).status_code in (401, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nobody_changes_it(members: Members, method: str) -> None:
    await report(members, **refusal(members, None, "verbatim"))
    admin = await admin_of(members)
    (record,) = (await admin.get(AUDIT)).json()["data"]
    for address in (AUDIT, f"{AUDIT}/{record['id']}"):
        assert (await admin.request(method, address)).status_code in (404, 405)


async def test_receipts_of_released_answers_are_a_chain_of_the_tenant(members: Members) -> None:
    document_id = (await members.put("a.md", MANUAL)).json()["id"]
    for query in ("hotels", "hotels of the trip"):
        found = await sealed_part(members, query)
        await report(members, **outcome(members, found["search_id"]))
    assert (await sealed_part(members))["released"] == RELEASED
    await report(members, **refusal(members, None, "verbatim"))
    admin = await admin_of(members)
    first = (await admin.get(RECEIPTS, params={"limit": 2})).json()
    rest = (await admin.get(RECEIPTS, params={"after": first["last_id"]})).json()
    assert (first["has_more"], rest["has_more"]) == (True, False)
    end = (await admin.get(f"{RECEIPTS}/end")).json()
    sealed = [SealedReceipt(each["body"], each["signature"]) for each in (*first["data"], *rest["data"], end)]
    assert verify_chain([each.line for each in sealed], end["public_key"]) == 3
    assert [each["number"] for each in first["data"]] == [1, 2]
    of_document = (await admin.get(RECEIPTS, params={"document_id": document_id})).json()["data"]
    assert [orjson.loads(each["body"])["turn_id"] for each in of_document] == ["resp_1"] * 3
    assert str(RELEASED["summary"]) not in str(of_document)
    assert (await (await admin_of(members, "elsewhere")).get(RECEIPTS)).json()["data"] == []
    assert (await members.owner.get(RECEIPTS)).status_code == 403
