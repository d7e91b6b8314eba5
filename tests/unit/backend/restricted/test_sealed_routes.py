"""The API for the sealed room: searches that are charged, and outcomes that are written down."""

from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from backend.restricted.domain.canaries import canaries_in, document_canary
from backend.restricted.domain.restricted_budget import RestrictedLimits
from tests.fakes.http_api import SECRET
from tests.unit.backend.conftest import BASES, MANUAL, Members
from tests.unit.backend.restricted.internal_api import (
    RELEASED,
    VERSIONS,
    ask,
    outcome,
    refusal,
    report,
    sealed_part,
    search,
    ticket_for,
)


async def test_a_small_base_comes_whole_with_its_canaries(members: Members) -> None:
    put = (await members.put("a.md", MANUAL)).json()
    answer = (await search(members)).json()
    assert (answer["whole"], answer["sealed"]["refusal"], answer["sealed"]["released"]) == (True, None, None)
    first, second = answer["sealed"]["chunks"]
    assert set(first) == {"knowledge_base_id", "chunk_id", "document", "heading_path", "ordinal", "text", "canary"}
    assert (second["document"], second["heading_path"], second["ordinal"]) == ("a.md", ["Travel", "Hotels"], 1)
    assert second["text"] == "Hotels cost at most ninety."
    assert second["canary"] == first["canary"] == document_canary(SECRET, put["id"])
    assert canaries_in(SECRET, second["canary"]) == (second["canary"],)


async def test_the_room_is_told_which_bases_may_be_translated(members: Members) -> None:
    await members.put("a.md", MANUAL)
    assert (await sealed_part(members))["restricted_translation"] == []
    await members.owner.patch(members.base, json={"restricted_translation": True})
    assert (await sealed_part(members))["restricted_translation"] == [members.base_id]


async def test_no_translation_from_before_is_given_again_after_the_owner_forbade_it(members: Members) -> None:
    await members.put("a.md", MANUAL)
    await members.owner.patch(members.base, json={"restricted_translation": True})
    found = await sealed_part(members)
    await report(members, **outcome(members, found["search_id"]))
    assert (await sealed_part(members))["released"] == RELEASED
    pending = await sealed_part(members, query="hotels and trains")
    await members.owner.patch(members.base, json={"restricted_translation": False})
    told = await report(members, **outcome(members, pending["search_id"]))
    assert told.json() == {"recorded": True, "release": False, "reason": "base_changed"}
    assert (await sealed_part(members))["released"] is None


@pytest.mark.parametrize("query", ["What are the biggest risks?", "主要风险是什么？"])
async def test_a_question_without_a_topic_is_about_all_of_a_small_base(members: Members, query: str) -> None:
    await members.put("a.md", MANUAL)
    answer = (await search(members, query=query)).json()
    assert (answer["whole"], len(answer["sealed"]["chunks"])) == (True, 2)


async def test_a_larger_base_brings_its_best_chunks_and_never_more_than_24(members: Members) -> None:
    for number in range(30):
        await members.put(f"{number}.txt", f"Hotel {number}.", "text/plain")
    answer = (await search(members, query="hotel", limit=100)).json()
    assert (answer["whole"], len(answer["sealed"]["chunks"])) == (False, 24)


async def test_other_chunks_of_the_found_documents_come_for_the_gate(members: Members) -> None:
    await members.put("a.md", MANUAL)
    await members.put("b.md", "# Trains\n\nTrains are late.")
    assert (await sealed_part(members))["siblings"] == []
    found = await sealed_part(members, limit=1)
    (chunk,), (sibling,) = found["chunks"], found["siblings"]
    assert (sibling["document"], sibling["canary"]) == (chunk["document"], chunk["canary"]) == ("a.md", chunk["canary"])
    assert sibling["chunk_id"] != chunk["chunk_id"]


async def test_a_turn_that_runs_again_finds_the_search_that_it_was_charged_for(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    assert await sealed_part(members) == found
    told = await report(members, **outcome(members, found["search_id"]))
    assert told.json()["release"]
    (record,) = members.house.ledger.records
    assert record.budget_after is not None
    assert record.budget_after[0].day == 19


@pytest.mark.parametrize("query", ["zebra", "", "完全无关", "river crossing garden music ship bear hotels"])
async def test_weak_evidence_is_a_refusal_that_is_charged_and_audited(members: Members, query: str) -> None:
    await members.put("a.md", MANUAL.replace("the", "").replace("of", ""))
    found = await sealed_part(members, query=query)
    assert (found["refusal"], found["chunks"]) == ("insufficient_evidence", [])
    (record,) = members.house.ledger.records
    assert (record.decision, record.reason, record.search_id) == ("refuse", "insufficient_evidence", found["search_id"])
    assert record.budget_before is not None and record.budget_after is not None
    assert (record.budget_before[0].day, record.budget_after[0].day) == (20, 19)
    again = await report(members, **refusal(members, found["search_id"], "timeout"))
    assert again.status_code == 409


async def test_a_release_is_recorded_kept_and_given_again_without_a_charge(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    told = await report(members, **outcome(members, found["search_id"]))
    assert told.json() == {"recorded": True, "release": True, "reason": "risk"}
    for query in ("HOTELS", "  ｈｏｔｅｌｓ\n"):
        again = await sealed_part(members, query=query)
        assert (again["released"], again["chunks"], again["refusal"]) == (RELEASED, [], None)
    first, *repeats = members.house.ledger.records
    assert [(one.is_cached, one.budget_before) for one in repeats] == [(True, None), (True, None)]
    assert (first.preview, first.chunks_sent, first.latency_ms) == (RELEASED["summary"], 2, 120)
    other = await sealed_part(members, query="hotels trains")
    assert other["released"] is None
    assert members.house.safe_summaries.decided_records == members.house.ledger.records


async def test_a_result_is_kept_for_the_one_who_got_it_and_for_the_same_base_and_versions(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    await report(members, **outcome(members, found["search_id"]))
    await members.owner.put(f"{members.base}/members/bea", json={"role": "restricted_analyst"})
    others = (await search(members, ticket_for(members, "bea"))).json()["sealed"]
    assert others["released"] is None
    for name in VERSIONS:
        assert (await sealed_part(members, sealed={**VERSIONS, name: "new"}))["released"] is None
    assert (await sealed_part(members))["released"] == RELEASED
    await members.put("b.md", MANUAL)
    assert (await sealed_part(members))["released"] is None


async def test_budgets_end_and_say_which(members: Members) -> None:
    await members.put("a.md", MANUAL)
    for reason, limits in (
        ("budget_conversation", RestrictedLimits(conversation=0, day=9, month=9)),
        ("budget_day", RestrictedLimits(conversation=9, day=0, month=9)),
        ("budget_month", RestrictedLimits(conversation=9, day=9, month=0)),
    ):
        members.house.limits = limits
        members.rebuild()
        found = await sealed_part(members)
        assert (found["refusal"], found["chunks"]) == (reason, [])
        assert members.house.ledger.records[-1].reason == reason


async def test_a_pause_holds_back_what_was_under_way_when_it_came(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = [await sealed_part(members, query=f"hotels {number}") for number in range(6)]
    for part in found[:5]:
        await report(members, **refusal(members, part["search_id"], "gate_blocked_overlap", gate_codes=["overlap"]))
    told = await report(members, **outcome(members, found[5]["search_id"]))
    assert told.json() == {"recorded": True, "release": False, "reason": "paused"}
    assert members.house.ledger.records[-1].reason == "paused"


async def test_five_refusals_pause_even_what_was_released_before(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    await report(members, **outcome(members, found["search_id"]))
    for reason in ("exact_value", "verbatim", "gate_blocked_overlap", "policy_probe", "enumeration"):
        told = await report(members, **refusal(members, None, reason, chunks_found=0, chunks_sent=0))
        assert told.json() == {"recorded": True, "release": False, "reason": reason}
    assert (await sealed_part(members))["refusal"] == "paused"
    members.house.clock.advance(15 * 60)
    assert (await sealed_part(members))["released"] == RELEASED


async def test_open_asks_do_not_pause_and_guesses_do(members: Members) -> None:
    await members.put("a.md", MANUAL)
    for _ in range(6):
        told = await report(members, **refusal(members, None, "enumeration", is_open_ask=True))
        assert told.json() == {"recorded": True, "release": False, "reason": "enumeration"}
    assert len(members.house.ledger.records) == 6
    assert (await sealed_part(members))["refusal"] is None
    for _ in range(5):
        await report(members, **refusal(members, None, "knowledge_base_question", is_open_ask=False))
    assert (await sealed_part(members))["refusal"] == "paused"


async def test_only_a_refusal_before_any_search_is_an_open_ask(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    for body in (
        refusal(members, found["search_id"], "exact_value", is_open_ask=True),
        refusal(members, None, "timeout", is_open_ask=True),
        refusal(members, None, "gate_blocked_overlap", is_open_ask=True),
    ):
        told = await report(members, **body)
        assert (told.status_code, told.json()["error"]["param"]) == (400, "is_open_ask")


async def test_failures_that_are_not_of_the_users_doing_do_not_pause(members: Members) -> None:
    await members.put("a.md", MANUAL)
    for reason in ("timeout", "model_unavailable", "invalid_output", "circuit_open", "timeout", "timeout"):
        await report(members, **refusal(members, None, reason))
    assert (await sealed_part(members))["refusal"] is None


async def test_what_moved_since_the_search_is_not_released(members: Members) -> None:
    await members.put("a.md", MANUAL)
    ticket = ticket_for(members, "ana")
    first, second, third = [(await sealed_part(members, query=f"hotels {n}"))["search_id"] for n in range(3)]
    await members.put("b.md", MANUAL)
    told = await report(members, ticket, **outcome(members, first))
    assert told.json() == {"recorded": True, "release": False, "reason": "base_changed"}
    await members.owner.put(f"{members.base}/members/ana", json={"role": "reader"})
    told = await report(members, ticket, **outcome(members, second))
    assert told.json() == {"recorded": True, "release": False, "reason": "access_changed"}
    await members.owner.delete(f"{members.base}/members/ana")
    for body in (outcome(members, third), refusal(members, None, "access_changed")):
        told = await report(members, ticket, **body)
        assert told.json() == {"recorded": True, "release": False, "reason": "access_changed"}
    records = members.house.ledger.records
    assert [record.reason for record in records] == ["base_changed", *["access_changed"] * 3]
    assert {(record.decision, record.preview) for record in records} == {("refuse", "")}


async def test_the_same_outcome_again_changes_nothing_and_another_one_is_refused(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    body = outcome(members, found["search_id"])
    for _ in range(2):
        assert (await report(members, **body)).json()["release"] is True
    body["released"] = {**RELEASED, "summary": "Something else."}
    other = await report(members, **body)
    body["released"] = RELEASED
    assert (other.status_code, other.json()["error"]["param"]) == (409, "search_id")
    assert len(members.house.ledger.records) == 1
    await members.put("b.md", MANUAL)
    assert (await report(members, **body)).json() == {"recorded": True, "release": False, "reason": "base_changed"}


async def test_nothing_is_released_that_is_not_on_record(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    members.house.ledger.is_away = True
    assert (await report(members, **outcome(members, found["search_id"]))).status_code == 503
    assert (await search(members, query="trains")).status_code == 503
    members.house.ledger.is_away = False
    assert (await sealed_part(members))["released"] is None


async def test_a_search_tells_how_often_the_model_has_repeated_canaries_within_the_hour(members: Members) -> None:
    await members.put("a.md", MANUAL)
    first = await sealed_part(members)
    await report(members, **refusal(members, first["search_id"], "gate_blocked_canary", canary_hits=7))
    second = await sealed_part(members, query="trains")
    await report(members, **refusal(members, second["search_id"], "timeout"))
    counted = [first["canary_replies"], second["canary_replies"], (await sealed_part(members))["canary_replies"]]
    assert counted == [0, 1, 1]
    assert (await sealed_part(members, sealed={**VERSIONS, "model": "another"}))["canary_replies"] == 0
    members.house.clock.advance(3600)
    assert (await sealed_part(members))["canary_replies"] == 0


async def test_an_outcome_belongs_to_a_search_of_its_turn(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    await members.owner.put(f"{members.base}/members/bea", json={"role": "restricted_analyst"})
    stolen = await report(members, ticket_for(members, "bea"), **outcome(members, found["search_id"]))
    unknown = await report(members, **outcome(members, "search_x"))
    assert (stolen.status_code, unknown.status_code) == (404, 404)
    assert (await report(members, **outcome(members, found["search_id"], model="another"))).status_code == 400
    assert (await report(members, **outcome(members, found["search_id"]))).status_code == 200


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"released": None}, "released"),
        ({"search_id": None}, "search_id"),
        ({"reason": "gap"}, "reason"),
        ({"reason": "exact_value"}, "reason"),
        ({"decision": "refuse"}, "released"),
        ({"decision": "refuse", "released": None}, "reason"),
        ({"decision": "maybe"}, "decision"),
        ({"reason": "unheard_of"}, "reason"),
        ({"gate_codes": ["unheard_of"]}, "gate_codes[0]"),
        ({"gate_codes": ["overlap"] * 25}, "gate_codes"),
        ({"rewrites": 2}, "rewrites"),
        ({"chunks_sent": 25}, "chunks_sent"),
        ({"latency_ms": -1}, "latency_ms"),
        ({"text": "x"}, "text"),
        ({"released": {**RELEASED, "summary": "x" * 401}}, "released.summary"),
        ({"released": {**RELEASED, "risks": ["x"] * 5}}, "released.risks"),
        ({"released": {**RELEASED, "note": "x"}}, "released.note"),
        ({"model": ""}, "model"),
    ],
)
async def test_a_wrong_outcome_is_named_and_leaves_nothing(
    members: Members, changes: dict[str, Any], param: str
) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    answer = await report(members, **{**outcome(members, found["search_id"]), **changes})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert members.house.ledger.records == []


@pytest.mark.parametrize("path", ["search", "outcomes"])
async def test_bad_tickets_are_refused_and_audited_within_bounds(members: Members, path: str) -> None:
    body = {"query": "x", "sealed": VERSIONS} if path == "search" else outcome(members, None)
    for number in range(70):
        ticket = ticket_for(members, "ana", seconds=-1) if number % 2 else ticket_for(members, "ana", secret="other")
        assert (await ask(members, path, ticket, **body)).status_code == 401
    records = members.house.ledger.records
    assert {(record.reason, record.tenant, record.user_hash) for record in records} == {("bad_ticket", "", "")}
    assert (len(records), len(members.house.safe_summaries.decided_records)) == (60, 70)


@pytest.mark.parametrize("path", ["search", "outcomes"])
async def test_a_base_outside_of_the_ticket_is_a_403(members: Members, path: str) -> None:
    other = (await members.owner.post(BASES, json={"name": "Other"})).json()["id"]
    body = {"query": "x", "sealed": VERSIONS} if path == "search" else refusal(members, None, "verbatim")
    answer = await ask(members, path, ticket_for(members, "ana"), **{**body, "knowledge_base_ids": [other]})
    assert answer.status_code == 403
    await members.owner.delete(f"{members.base}/members/ana")
    assert (await search(members)).status_code == 403


async def test_a_missing_version_is_named(members: Members) -> None:
    for name in VERSIONS:
        sealed = {key: value for key, value in VERSIONS.items() if key != name}
        answer = await search(members, sealed=sealed)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, f"sealed.{name}")


class EarlierPart(BaseModel):
    """The answer as the sealed room of the release before reads it."""

    search_id: str
    refusal: str | None
    chunks: tuple[dict[str, Any], ...]
    siblings: tuple[dict[str, Any], ...] = ()


async def test_a_strict_base_hands_no_text_to_a_room_that_makes_prose_of_it(members: Members) -> None:
    await members.put("a.md", MANUAL)
    await members.owner.patch(members.base, json={"restricted_grade": "strict", "routing_keywords": ["booking"]})
    part = await sealed_part(members)
    earlier = EarlierPart.model_validate(part)
    assert (earlier.refusal, earlier.chunks, earlier.siblings) == (None, (), ())
    assert part["strict"]["areas"] == ["booking"]
    assert [chunk["text"] for chunk in part["strict"]["chunks"]][-1] == "Hotels cost at most ninety."


async def test_fewer_documents_than_an_owner_has_set_leave_in_findings_alone(members: Members) -> None:
    await members.put("a.md", MANUAL)
    part = await sealed_part(members)
    assert (part["strict"], part["support"], part["has_records"]) == (None, 3, False)
    await members.owner.patch(members.base, json={"support": 4, "content": "records"})
    part = await sealed_part(members)
    assert part["strict"] is not None
    told = await report(members, **outcome(members, part["search_id"]))
    assert (told.status_code, told.json()["error"]["param"]) == (400, "released")
    for name in ("b.md", "c.md", "d.md"):
        await members.put(name, MANUAL)
    part = await sealed_part(members)
    assert (part["strict"], part["support"], part["has_records"]) == (None, 4, True)


async def test_areas_are_the_keywords_that_tell_nothing_of_the_base(members: Members) -> None:
    await members.put("a.md", "The zebrafish valve of Ruth Calloway leaks.", "text/plain")
    words = ["repair", "Calloway", "zebrafish"]
    await members.owner.patch(members.base, json={"restricted_grade": "strict", "routing_keywords": words})
    assert (await sealed_part(members, query="zebrafish"))["strict"]["areas"] == ["repair"]


async def test_from_a_strict_base_no_prose_is_released_whoever_reports_it(
    members: Members, admin: httpx2.AsyncClient
) -> None:
    await members.put("a.md", MANUAL)
    await members.owner.patch(members.base, json={"restricted_grade": "strict"})
    found = await sealed_part(members)
    told = await report(members, **outcome(members, found["search_id"]))
    assert (told.status_code, told.json()["error"]["param"]) == (400, "released")
    coded = {"area": "travel", "weakness": "no_owner", "severity": "high", "action": "name_owner"}
    released = RELEASED | {"findings": [coded]}
    told = await report(members, **outcome(members, found["search_id"], released=released))
    assert told.json()["release"] is True
    assert (await sealed_part(members))["released"] == released
    audit = (await admin.get("/v1/audit/safe_summaries")).json()["data"]
    assert audit[-1]["preview"] == "travel/no_owner/high/name_owner"


async def test_what_was_prose_is_not_given_again_once_the_base_is_strict(members: Members) -> None:
    await members.put("a.md", MANUAL)
    found = await sealed_part(members)
    await report(members, **outcome(members, found["search_id"]))
    assert (await sealed_part(members))["released"] == RELEASED
    pending = await sealed_part(members, query="hotels and trains")
    await members.owner.patch(members.base, json={"restricted_grade": "strict"})
    assert (await sealed_part(members))["released"] is None
    coded = RELEASED | {"findings": [{"area": "travel", "strength": "reliable"}]}
    told = await report(members, **outcome(members, pending["search_id"], released=coded))
    assert told.json() == {"recorded": True, "release": False, "reason": "base_changed"}
