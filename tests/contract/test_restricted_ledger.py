"""One contract for every `RestrictedLedger` and `AuditTrail`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from backend.foundation.sql.chosen import open_database
from backend.restricted.domain.receipts import ReceiptQuery, write_end
from backend.restricted.domain.restricted import AuditQuery, Candidate, Ruling, SealedSearch, SearchAdmission
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.ports.restricted import RestrictedLedger
from shared.errors import NotFound, PermissionDenied
from shared.models.knowledge_api import ToldFact
from shared.models.safe_summary import AnswerReason, Decision, Failure, GateBlock, PolicyRefusal, Reason
from shared.receipts import verify_chain
from tests.contract.knowledge_cases import T0, make_base, put
from tests.contract.restricted_cases import (
    LIMITS,
    RELEASED,
    SIGNER,
    VERSIONS,
    WIDE,
    Restricted,
    candidates,
    make_record,
    make_search,
    opened_restricted,
    restricted_over,
    settlement,
    sql_restricted,
)
from tests.contract.store_cases import KINDS, POOL_WAIT_SECONDS, database_url


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Restricted]:
    async with opened_restricted(request, tmp_path) as opened:
        await fill(opened)
        yield opened


async def fill(stores: Restricted) -> None:
    """Two bases of ann: `kb_a` with 100 chunks in one document, `kb_b` with three."""
    for base_id, texts in (("kb_a", [f"text {number}" for number in range(100)]), ("kb_b", ["one", "two", "three"])):
        await stores.knowledge.create_base(make_base(base_id), "ann")
        await put(stores.knowledge, "a", texts, base_id=base_id)


async def charged(
    ledger: RestrictedLedger, search: SealedSearch, found: Sequence[Candidate], limits: RestrictedLimits
) -> SearchAdmission:
    return (await ledger.charge(search, found, limits)).admission


async def spend(
    stores: Restricted, count: int, days: float = 0, prefix: str = "", conversation_id: str = "conv_a"
) -> list[SearchAdmission]:
    return [
        await charged(
            stores.ledger,
            make_search(f"s{prefix}{days}{number}", days=days, conversation_id=conversation_id),
            [],
            LIMITS,
        )
        for number in range(count)
    ]


async def test_a_charged_search_comes_back_with_what_became_of_it(stores: Restricted) -> None:
    search = make_search("s1", "kb_a", "kb_b")
    admission = await charged(stores.ledger, search, candidates("doc_kb_a_a", [3, 1]), LIMITS)
    assert (admission.refusal, admission.chunks_found, admission.chunks_new) == (None, 2, 2)
    assert admission.chunk_ids == ("chunk_doc_kb_a_a_3", "chunk_doc_kb_a_a_1")
    assert [(left.conversation, left.day, left.month, left.chunks) for left in admission.budget_before] == [
        (8, 20, 60, 20),
        (8, 20, 60, None),
    ]
    assert [(left.conversation, left.day, left.month, left.chunks) for left in admission.budget_after] == [
        (7, 19, 59, 18),
        (7, 19, 59, None),
    ]
    kept = await stores.ledger.find_search("s1")
    assert kept is not None
    assert (kept.search, kept.admission, kept.ruling) == (search, admission, None)
    settled = settlement(make_record("a1", search, AnswerReason.RISK), search, is_released=True)
    assert await stores.ledger.settle(settled, SIGNER) is None
    kept = await stores.ledger.find_search("s1")
    assert kept is not None
    assert kept.ruling == settled.ruling
    assert await stores.ledger.find_search("s2") is None


async def test_an_equal_search_of_a_turn_that_runs_again_is_charged_once(stores: Restricted) -> None:
    first = make_search("s1", "kb_b", cache_key="key")
    admission = await charged(stores.ledger, first, candidates("doc_kb_b_a", [0, 1], "kb_b"), LIMITS)
    again = make_search("s2", "kb_b", cache_key="key", days=0.01)
    found = await stores.ledger.charge(again, candidates("doc_kb_b_a", [0, 1, 2], "kb_b"), LIMITS)
    assert (found.search, found.admission, found.ruling) == (first, admission, None)
    assert await stores.ledger.find_search("s2") is None
    others = (
        make_search("t0", "kb_b", cache_key="other"),
        make_search("t1", "kb_b", cache_key="key", turn_id="resp_b"),
    )
    for search in others:
        assert (await stores.ledger.charge(search, [], LIMITS)).search == search
    await stores.ledger.settle(settlement(make_record("a1", first, GateBlock.OVERLAP), first), SIGNER)
    ruled = await stores.ledger.charge(again, [], LIMITS)
    assert (ruled.search, ruled.admission.budget_after[0].conversation) == (again, LIMITS.conversation - 4)


async def test_each_limit_ends_the_searches_and_a_refused_one_costs_nothing(stores: Restricted) -> None:
    assert [one.refusal for one in await spend(stores, 9)] == [None] * 8 + [Failure.BUDGET_CONVERSATION]
    more = await spend(stores, 13, prefix="b", conversation_id="conv_b", days=0.1)
    assert [one.refusal for one in more] == [None] * 8 + [Failure.BUDGET_CONVERSATION] * 5
    day = await spend(stores, 5, prefix="c", conversation_id="conv_c", days=0.2)
    assert [one.refusal for one in day] == [None] * 4 + [Failure.BUDGET_DAY]
    assert day[-1].budget_before == day[-1].budget_after
    assert await stores.ledger.find_search("sc0.24") is None


async def test_days_and_months_roll(stores: Restricted) -> None:
    for day in (0, 1, 2):
        for part in ("x", "y", "z"):
            await spend(stores, 8, prefix=part, conversation_id=f"conv_{part}{day}", days=day)
    refused = await charged(stores.ledger, make_search("t1", days=5, conversation_id="conv_t"), [], LIMITS)
    assert refused.refusal is Failure.BUDGET_MONTH
    before = await charged(
        stores.ledger, make_search("t2", days=30, at=T0 - timedelta(seconds=1), conversation_id="conv_t"), [], LIMITS
    )
    assert before.refusal is Failure.BUDGET_MONTH
    after = await charged(stores.ledger, make_search("t3", days=30, conversation_id="conv_t"), [], LIMITS)
    assert after.refusal is None
    assert after.budget_before[0].month == 20


async def test_budgets_are_of_one_user_and_base_whatever_the_version(stores: Restricted) -> None:
    await spend(stores, 8)
    assert (await charged(stores.ledger, make_search("u", user_id="bob"), [], LIMITS)).refusal is None
    assert (await charged(stores.ledger, make_search("b", "kb_b"), [], LIMITS)).refusal is None
    both = await charged(stores.ledger, make_search("ab", "kb_b", "kb_a"), [], LIMITS)
    assert both.refusal is Failure.BUDGET_CONVERSATION
    search = make_search("v")
    newer = search.model_copy(update={"bases": (search.bases[0].model_copy(update={"version": 2}),)})
    assert (await charged(stores.ledger, newer, [], LIMITS)).refusal is Failure.BUDGET_CONVERSATION


async def test_a_fifth_of_a_base_may_be_sent_within_a_day(stores: Restricted) -> None:
    first = await charged(stores.ledger, make_search("s1"), candidates("doc_kb_a_a", range(15)), WIDE)
    assert (len(first.chunk_ids), first.chunks_new) == (15, 15)
    second = await charged(stores.ledger, make_search("s2"), candidates("doc_kb_a_a", range(30, 2, -1)), WIDE)
    sent = [int(chunk_id.rpartition("_")[2]) for chunk_id in second.chunk_ids]
    assert sent == [30, 29, 28, 27, 26, *range(14, 2, -1)]
    assert (second.chunks_new, second.budget_after[0].chunks) == (5, 0)
    third = await charged(stores.ledger, make_search("s3"), candidates("doc_kb_a_a", [50, 51]), WIDE)
    assert (third.refusal, third.chunk_ids) == (Failure.BUDGET_CHUNKS, ())
    assert (await charged(stores.ledger, make_search("s4"), candidates("doc_kb_a_a", [0]), WIDE)).refusal is None
    others = await charged(stores.ledger, make_search("s5", user_id="bob"), candidates("doc_kb_a_a", [50]), WIDE)
    assert others.refusal is None
    later = await charged(stores.ledger, make_search("s6", days=1), candidates("doc_kb_a_a", [50]), WIDE)
    assert later.refusal is None


async def test_a_small_base_is_bounded_by_its_searches_alone(stores: Restricted) -> None:
    for number in range(3):
        search = make_search(f"s{number}", "kb_b")
        admission = await charged(stores.ledger, search, candidates("doc_kb_b_a", [0, 1, 2], "kb_b"), WIDE)
        assert (admission.refusal, len(admission.chunk_ids)) == (None, 3)


async def test_a_base_that_is_gone_cannot_be_charged(stores: Restricted) -> None:
    await stores.knowledge.delete_base("kb_b")
    with pytest.raises(PermissionDenied):
        await charged(stores.ledger, make_search("s1", "kb_a", "kb_b"), [], LIMITS)
    assert await stores.ledger.find_search("s1") is None
    left = (await charged(stores.ledger, make_search("s2"), [], LIMITS)).budget_before
    assert left[0].day == LIMITS.day


async def refuse(stores: Restricted, name: str, reason: Reason, minutes: float, *base_ids: str) -> None:
    search = make_search("", *base_ids, at=T0 + timedelta(minutes=minutes))
    record = make_record(name, search, reason, search_id=None)
    await stores.ledger.settle(settlement(record, search), SIGNER)


async def paused(stores: Restricted, minutes: float, *base_ids: str, user_id: str = "ann") -> bool:
    return await stores.ledger.is_paused(user_id, base_ids or ("kb_a",), T0 + timedelta(minutes=minutes))


async def test_five_refusals_in_ten_minutes_pause_for_fifteen(stores: Restricted) -> None:
    for number, reason in enumerate((PolicyRefusal.VERBATIM, Failure.INSUFFICIENT_EVIDENCE) * 2):
        await refuse(stores, f"a{number}", reason, number)
    assert not await paused(stores, 4)
    await refuse(stores, "a4", GateBlock.OVERLAP, 9.9)
    assert [await paused(stores, minutes) for minutes in (9.9, 24.8, 24.9)] == [True, True, False]
    assert [await paused(stores, 10, "kb_b"), await paused(stores, 10, "kb_b", "kb_a")] == [False, True]
    assert not await paused(stores, 10, user_id="bob")
    refused = await charged(stores.ledger, make_search("s1", at=T0 + timedelta(minutes=10)), [], LIMITS)
    assert refused.refusal is Failure.PAUSED
    again = await charged(stores.ledger, make_search("s2", at=T0 + timedelta(minutes=25)), [], LIMITS)
    assert again.refusal is None


async def test_open_asks_are_recorded_and_pause_nobody(stores: Restricted) -> None:
    for number in range(6):
        record = make_record(f"a{number}", make_search(""), PolicyRefusal.ENUMERATION, search_id=None)
        await stores.ledger.settle(settlement(record).model_copy(update={"is_open_ask": True}), SIGNER)
    assert not await paused(stores, 0)


async def test_refusals_far_apart_or_of_other_causes_pause_nobody(stores: Restricted) -> None:
    for number in range(6):
        await refuse(stores, f"a{number}", PolicyRefusal.VERBATIM, 2.5 * number)
        await refuse(stores, f"b{number}", Failure.TIMEOUT, 2.5 * number)
        await refuse(stores, f"c{number}", Failure.BUDGET_DAY, 2.5 * number)
    assert not await paused(stores, 12.5)


async def test_a_refusal_counts_in_each_base_that_is_there(stores: Restricted) -> None:
    for number in range(5):
        await refuse(stores, f"a{number}", PolicyRefusal.VERBATIM, number, "kb_b", "kb_x", "kb_a")
    assert [await paused(stores, 5, base_id) for base_id in ("kb_a", "kb_b", "kb_x")] == [True, True, False]


async def tell(stores: Restricted, search: SealedSearch, *digests: str, document_id: str = "d") -> Ruling | None:
    """Release an answer of a search that tells such facts of a document, of which two may be told."""
    await charged(stores.ledger, search, [], WIDE)
    record = make_record(f"audit_{search.id}", search, AnswerReason.RISK, facts=len(digests))
    told = tuple(ToldFact(document_id=document_id, digest=digest) for digest in digests)
    settled = settlement(record, search, is_released=True).model_copy(update={"facts": told, "most_facts": 2})
    return await stores.ledger.settle(settled, SIGNER)


async def test_more_facts_of_a_document_than_may_be_told_are_put_on_record_and_not_released(stores: Restricted) -> None:
    assert await tell(stores, make_search("s1"), "one", "two") is None
    assert await tell(stores, make_search("s2"), "two", "one") is None
    assert await tell(stores, make_search("s3"), "three", document_id="other") is None
    ruling = await tell(stores, make_search("s4"), "three")
    assert ruling is not None
    assert (ruling.is_released, ruling.reason, ruling.digest) == (False, Failure.BUDGET_FACTS, "digest-audit_s4")
    assert await stores.ledger.find_released("key-s4") is None
    kept = await stores.ledger.find_search("s4")
    assert kept is not None and kept.ruling == ruling
    records = (await stores.trail.page("acme", AuditQuery(limit=9))).records
    refused = {one.id: (one.decision, one.facts) for one in records}["audit_s4"]
    assert refused == (Decision.REFUSE, None)
    assert len(await stores.trail.receipts("acme", ReceiptQuery())) == 3


async def test_facts_are_charged_by_user_and_for_30_days(stores: Restricted) -> None:
    assert await tell(stores, make_search("s1"), "one", "two") is None
    assert await tell(stores, make_search("s2", user_id="bob"), "three", "four") is None
    assert await tell(stores, make_search("s3", days=29.9), "three") is not None
    assert await tell(stores, make_search("s4", days=30.1), "three", "four") is None


async def test_what_a_search_has_shown_is_read_again_by_its_documents(stores: Restricted) -> None:
    (document,) = await stores.knowledge.all_documents(["kb_a"])
    found = [one.model_copy(update={"document_id": document.id}) for one in candidates("doc_kb_a_a", [3, 1])]
    await charged(stores.ledger, make_search("s1"), found, LIMITS)
    assert await stores.ledger.read_shown("s1") == ((document.id, "text 1"), (document.id, "text 3"))
    assert await stores.ledger.read_shown("none") == ()


async def test_what_was_released_is_kept_with_its_record_and_once(stores: Restricted) -> None:
    search = make_search("s1")
    await charged(stores.ledger, search, [], LIMITS)
    first = settlement(make_record("a1", search, AnswerReason.RISK), search, is_released=True)
    assert await stores.ledger.settle(first, SIGNER) is None
    assert (
        await stores.ledger.settle(settlement(make_record("a2", search, Failure.TIMEOUT), search), SIGNER)
        == first.ruling
    )
    assert await stores.ledger.find_released("key-s1") == RELEASED
    assert await stores.ledger.find_released("key-s2") is None
    assert [record.id for record in await page(stores)] == ["a1"]


async def test_a_later_release_takes_the_place_of_the_one_before(stores: Restricted) -> None:
    for name in ("s1", "s2"):
        search = make_search(name, cache_key="key", turn_id=f"resp_{name}")
        await charged(stores.ledger, search, [], LIMITS)
        record = make_record(f"a-{name}", search, AnswerReason.RISK)
        await stores.ledger.settle(settlement(record, search, is_released=True), SIGNER)
    assert await stores.ledger.find_released("key") == RELEASED


async def test_a_result_goes_with_each_base_that_it_was_made_of(stores: Restricted) -> None:
    search = make_search("s1", "kb_a", "kb_b")
    await charged(stores.ledger, search, [], LIMITS)
    await stores.ledger.settle(
        settlement(make_record("a1", search, AnswerReason.RISK), search, is_released=True), SIGNER
    )
    await stores.knowledge.delete_base("kb_b")
    assert await stores.ledger.find_released("key-s1") is None
    assert [record.id for record in await page(stores)] == ["a1"]


async def test_an_answer_that_was_cut_counts_towards_the_pause(stores: Restricted) -> None:
    for _ in range(5):
        assert not await paused(stores, 0)
        await stores.ledger.count_cut("ann", ["kb_gone", "kb_a"], T0)
    assert await paused(stores, 14)
    assert not await paused(stores, 14, user_id="bob")


async def test_what_has_no_outcome_can_be_found_and_is_not_forgotten(stores: Restricted) -> None:
    for name, days in (("s1", 1), ("s2", 0), ("s3", 2), ("s4", 0)):
        await charged(stores.ledger, make_search(name, days=days), [], LIMITS)
    settled = make_search("s4")
    await stores.ledger.settle(
        settlement(make_record("a4", settled, AnswerReason.RISK), settled, is_released=True), SIGNER
    )
    before = T0 + timedelta(days=1)
    assert await stores.ledger.find_unreported(before, 1) == ("s2",)
    assert await stores.ledger.find_unreported(before, 5) == ("s2", "s1")
    await stores.ledger.remove_old(before)
    assert await stores.ledger.find_unreported(before, 5) == ("s2", "s1")
    assert await stores.ledger.find_search("s4") is None


async def test_old_searches_and_results_are_forgotten_and_records_stay(stores: Restricted) -> None:
    for name, days in (("s1", 0), ("s2", 1)):
        search = make_search(name, days=days)
        await charged(stores.ledger, search, candidates("doc_kb_a_a", [days]), LIMITS)
        record = make_record(f"a-{name}", search, AnswerReason.RISK)
        await stores.ledger.settle(settlement(record, search, is_released=True), SIGNER)
    await stores.ledger.remove_old(T0)
    assert await stores.ledger.find_search("s1") is None
    assert await stores.ledger.find_search("s2") is not None
    assert [await stores.ledger.find_released(f"key-{name}") for name in ("s1", "s2")] == [None, RELEASED]
    assert len(await page(stores)) == 2


async def page(stores: Restricted, tenant: str = "acme", after: str | None = None, limit: int = 9):
    return (await stores.trail.page(tenant, AuditQuery(limit=limit, order="asc", after=after))).records


async def test_records_come_back_as_written_by_time_tenant_and_page(stores: Restricted) -> None:
    records = [
        make_record("a2", make_search("s1"), AnswerReason.RISK),
        make_record("a1", make_search("s2"), PolicyRefusal.VERBATIM, preview=""),
        make_record("a0", make_search("s3", days=1), GateBlock.UNICODE, budget_before=None, budget_after=None),
        make_record("a3", None, Failure.BAD_TICKET),
        make_record("b0", make_search("s4", tenant="other"), Failure.TIMEOUT),
    ]
    for record in records:
        await stores.ledger.settle(settlement(record), SIGNER)
    a2, a1, a0, a3, b0 = records
    assert await page(stores) == (a1, a2, a3, a0)
    assert await page(stores, "other") == (a3, b0)
    assert await page(stores, limit=2) == (a1, a2)
    assert await page(stores, after="a2") == (a3, a0)
    assert await stores.trail.page("acme", AuditQuery(limit=9, after="a3")) == ((a2, a1), False)
    for after in ("b0", "x"):
        with pytest.raises(NotFound):
            await page(stores, after=after)
    assert await stores.ledger.count_unassigned(T0 - timedelta(seconds=1)) == 1
    assert await stores.ledger.count_unassigned(T0) == 0


async def test_replies_with_canaries_are_counted_by_model_and_time(stores: Restricted) -> None:
    other = VERSIONS.model_copy(update={"model": "other"})
    for number, (hits, tenant, versions) in enumerate(
        [(2, "acme", VERSIONS), (1, "else", VERSIONS), (0, "acme", VERSIONS), (3, "acme", other), (4, "acme", None)]
    ):
        search = make_search(f"s{number}", tenant=tenant)
        record = make_record(f"a{number}", search, GateBlock.CANARY, canary_hits=hits, versions=versions)
        await stores.ledger.settle(settlement(record), SIGNER)
    assert await stores.ledger.count_canary_replies(VERSIONS.model, T0 - timedelta(seconds=1)) == 2
    assert await stores.ledger.count_canary_replies(VERSIONS.model, T0) == 0


@pytest.fixture(params=["sqlite", "postgresql"])
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Restricted]]:
    """Five databases over one, which know nothing of each other, as those of five processes."""
    url = database_url(request.param, request, tmp_path)
    async with sql_restricted(url) as first, AsyncExitStack() as opened:
        await fill(first)
        databases = [open_database(url, pool_wait_seconds=POOL_WAIT_SECONDS) for _ in range(4)]
        for database in databases:
            opened.push_async_callback(database.close)
        yield [first, *map(restricted_over, databases)]


async def test_searches_are_counted_exactly_under_50_parallel_calls(replicas: list[Restricted]) -> None:
    async def charge(number: int) -> Failure | None:
        # In either order: whoever holds one base may not wait for who holds the other.
        base_ids = ("kb_a", "kb_b") if number % 2 else ("kb_b", "kb_a")
        search = make_search(f"s{number}", *base_ids, conversation_id=f"conv_{number % 4}")
        return (await charged(replicas[number % 5].ledger, search, [], LIMITS)).refusal

    refusals = await asyncio.gather(*map(charge, range(50)))
    assert refusals.count(None) == LIMITS.day
    by_conversation = [refusals[number::4].count(None) for number in range(4)]
    assert max(by_conversation) <= LIMITS.conversation


async def test_chunks_are_counted_exactly_under_50_parallel_calls(replicas: list[Restricted]) -> None:
    async def charge(number: int) -> SearchAdmission:
        found = candidates("doc_kb_a_a", range(number, number + 7))
        return await charged(replicas[number % 5].ledger, make_search(f"s{number}"), found, WIDE)

    admissions = await asyncio.gather(*map(charge, range(50)))
    sent = {chunk_id for admission in admissions for chunk_id in admission.chunk_ids}
    assert len(sent) == sum(admission.chunks_new for admission in admissions) == 20


async def test_of_many_outcomes_of_a_search_one_is_written(replicas: list[Restricted]) -> None:
    search = make_search("s1")
    await charged(replicas[0].ledger, search, [], LIMITS)

    async def settle(number: int) -> bool:
        record = make_record(f"a{number}", search, AnswerReason.RISK)
        return await replicas[number % 5].ledger.settle(settlement(record, search, is_released=True), SIGNER) is None

    assert sum(await asyncio.gather(*map(settle, range(20)))) == 1
    assert len(await page(replicas[0])) == 1


async def test_facts_are_counted_exactly_under_parallel_answers(replicas: list[Restricted]) -> None:
    answers = [tell(replicas[number % len(replicas)], make_search(f"s{number}"), f"f{number}") for number in range(12)]
    rulings = await asyncio.gather(*answers)
    assert rulings.count(None) == 2


async def test_equal_searches_that_are_settled_at_once_all_keep_their_records(replicas: list[Restricted]) -> None:
    searches = [
        make_search(f"s{number}", "kb_a", "kb_b", cache_key="key", turn_id=f"resp_{number}") for number in range(12)
    ]
    for search in searches:
        await charged(replicas[0].ledger, search, [], WIDE)

    async def release(number: int) -> None:
        search = searches[number]
        record = make_record(f"a{number:02}", search, AnswerReason.RISK)
        assert await replicas[number % 5].ledger.settle(settlement(record, search, is_released=True), SIGNER) is None

    await asyncio.gather(*map(release, range(12)))
    assert [record.id for record in await page(replicas[0], limit=13)] == [f"a{number:02}" for number in range(12)]
    assert await replicas[0].ledger.find_released("key") == RELEASED
    receipts = await replicas[0].trail.receipts("acme", ReceiptQuery())
    end = write_end("acme", await replicas[0].trail.end_of_receipts("acme"), SIGNER)
    assert len(receipts) == 12
    assert verify_chain([sealed.line for sealed in (*receipts, end)], SIGNER.public_key) == 12
    await replicas[0].knowledge.delete_base("kb_b")
    assert await replicas[0].ledger.find_released("key") is None


async def test_refusals_are_counted_exactly_under_parallel_calls(replicas: list[Restricted]) -> None:
    await asyncio.gather(
        *(refuse(replicas[number % 5], f"a{number}", PolicyRefusal.VERBATIM, 0, "kb_a", "kb_b") for number in range(4))
    )
    assert not await paused(replicas[0], 0)
    await refuse(replicas[0], "a4", PolicyRefusal.VERBATIM, 0, "kb_b", "kb_a")
    assert [await paused(replicas[0], 0, base_id) for base_id in ("kb_a", "kb_b")] == [True, True]


async def test_a_receipt_tells_on_which_documents_an_answer_rests_and_so_does_that_of_a_repeat(
    stores: Restricted,
) -> None:
    search = make_search("s1")
    await charged(stores.ledger, search, candidates("doc_kb_a_a", range(2)), WIDE)
    record = make_record("a1", search, AnswerReason.RISK, is_cached=False)
    await stores.ledger.settle(settlement(record, search, is_released=True), SIGNER)
    again = make_record("a2", search, AnswerReason.RISK, search_id=None, is_cached=True)
    repeat = settlement(again, search).model_copy(update={"shown": RELEASED})
    await stores.ledger.settle(repeat, SIGNER)
    other = make_search("s2")
    await charged(stores.ledger, other, [], WIDE)
    await stores.ledger.settle(settlement(make_record("a3", other, Failure.TIMEOUT), other), SIGNER)
    found = await stores.trail.receipts("acme", ReceiptQuery("doc_kb_a_a"))
    bodies = [orjson.loads(sealed.body) for sealed in found]
    assert [(body["audit_id"], body["number"]) for body in bodies] == [("a1", 1), ("a2", 2)]
    assert {document["document_id"] for body in bodies for document in body["documents"]} == {"doc_kb_a_a"}
    assert RELEASED.summary not in str(bodies)
    assert await stores.trail.receipts("acme", ReceiptQuery(after=1, limit=1)) == found[1:]
    assert await stores.trail.receipts("acme", ReceiptQuery("doc_other")) == []
    assert await stores.trail.receipts("other", ReceiptQuery()) == []
