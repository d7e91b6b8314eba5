"""Rules of restricted searches that need no ledger: budgets, keys, evidence, what moved, clean-up, figures."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from backend.knowledge.domain.knowledge import Chunk, ChunkHit, MemberRole
from backend.restricted.domain.evidence import (
    LEAST_SIMILARITY,
    LEAST_SIMILARITY_ACROSS,
    evidence_of,
    is_weak,
    topical_words,
)
from backend.restricted.domain.released_results import normalised_query, result_key, user_hash
from backend.restricted.domain.restricted import Candidate, RefusalHistory, SearchedBase, change_since
from backend.restricted.domain.restricted_budget import BaseUsage, RestrictedLimits, admit, refused_again
from backend.restricted.services.forget_searches import ForgetSearches
from backend.restricted.telemetry.restricted import LoggingSafeSummaryObserver
from shared.models.safe_summary import AnswerReason, Failure, GateBlock, GateCode, PolicyRefusal, gate_blocked
from tests.contract.knowledge_cases import T0
from tests.contract.restricted_cases import VERSIONS, fake_restricted, make_record, make_search, settlement
from tests.fakes.clock import FakeClock

LIMITS = RestrictedLimits(conversation=8, day=20, month=60)
USER = ("acme", "ann")


def usage(base_id: str = "kb_a", chunk_count: int = 100, served: frozenset[str] = frozenset()) -> BaseUsage:
    return BaseUsage(
        knowledge_base_id=base_id,
        chunk_count=chunk_count,
        refusals=RefusalHistory(),
        conversation=0,
        day=0,
        month=0,
        served_today=served,
    )


def chunk(number: int, base_id: str = "kb_a") -> Candidate:
    return Candidate(knowledge_base_id=base_id, document_id="d", chunk_id=f"{base_id}{number}", ordinal=number)


@given(
    st.integers(0, 400),
    st.sets(st.integers(0, 60), max_size=30),
    st.lists(st.integers(0, 60), unique=True, max_size=24),
)
def test_never_more_than_a_fifth_of_a_base_is_sent(chunk_count: int, served: set[int], found: list[int]) -> None:
    sent_before = frozenset(chunk(number).chunk_id for number in served)
    admission = admit([usage(chunk_count=chunk_count, served=sent_before)], [chunk(n) for n in found], LIMITS, T0)
    new = set(admission.chunk_ids) - sent_before
    assert len(new) == admission.chunks_new
    assert chunk_count < 50 or not new or len(new | sent_before) <= chunk_count / 5
    assert list(admission.chunk_ids) == [chunk(n).chunk_id for n in found if chunk(n).chunk_id in admission.chunk_ids]
    assert (admission.refusal is Failure.BUDGET_CHUNKS) == (bool(found) and not admission.chunk_ids)
    assert chunk_count >= 50 or len(admission.chunk_ids) == len(found)


def test_each_base_has_its_own_share() -> None:
    found = [chunk(n, base_id) for n in range(20) for base_id in ("kb_a", "kb_b")]
    admission = admit([usage("kb_a", 50), usage("kb_b", 49)], found, LIMITS, T0)
    assert [sum(one.startswith(base_id) for one in admission.chunk_ids) for base_id in ("kb_a", "kb_b")] == [10, 20]


def test_a_pause_does_not_grow_with_what_came_before_it() -> None:
    refusals = RefusalHistory()
    for number in range(9):
        refusals = refused_again(refusals, T0 + timedelta(minutes=number))
    assert refusals.paused_until == T0 + timedelta(minutes=4 + 15)
    assert len(refused_again(refusals, T0 + timedelta(minutes=9)).refused_at) == 0


@given(st.text())
def test_normalising_twice_is_normalising_once(query: str) -> None:
    assert normalised_query(normalised_query(query)) == normalised_query(query)


def test_a_kept_result_depends_on_user_bases_versions_and_query_alone() -> None:
    def key(*bases: tuple[str, int], user: tuple[str, str] = USER, secret: str = "s", query: str = "A b") -> str:
        roles = [SearchedBase(id=id_, version=version, role=MemberRole.READER) for id_, version in bases]
        return result_key(secret, user, roles, VERSIONS, query)

    first = key(("kb_a", 1), ("kb_b", 2))
    assert first == key(("kb_b", 2), ("kb_a", 1), query=" ａ\tＢ ")
    others = [
        key(("kb_a", 1), ("kb_b", 3)),
        key(("kb_a", 1)),
        key(("kb_a", 2), ("kb_b", 1)),
        key(("kb_a", 1), ("kb_b", 2), user=("acme", "bob")),
        key(("kb_a", 1), ("kb_b", 2), user=("other", "ann")),
        key(("kb_a", 1), ("kb_b", 2), secret="t"),
        key(("kb_a", 1), ("kb_b", 2), query="a c"),
    ]
    assert len({first, *others}) == 8
    assert "a b" not in first


def test_a_user_has_one_name_in_the_audit_and_nobody_can_tell_whose() -> None:
    assert user_hash("s", "acme", "ann") == user_hash("s", "acme", "ann")
    hashes = {user_hash("s", "acme", "ann"), user_hash("t", "acme", "ann"), user_hash("s", "acmea", "nn")}
    assert len(hashes) == 3


def hit(text: str, *headings: str) -> ChunkHit:
    found = Chunk(id="c", document_id="d", ordinal=0, heading_path=headings, text=text, tokens=1)
    return ChunkHit(knowledge_base_id="kb_a", document_id="d", document_name="n", chunk=found, score=0.01)


@pytest.mark.parametrize(
    ("query", "weak"),
    [
        ("late bookings", False),
        ("What are the risks of late bookings?", False),
        ("bookings", False),
        ("weather in Lisbon tomorrow and the next ferry strike bookings", True),
        ("What are the risks?", False),
        ("assessment of bookings: main weaknesses, gaps, priorities, recommendations for improvement", False),
        ("booking delays", False),
        ("lateness of travellers", False),
        ("报销 发票", False),
        ("为了报销而忙碌的同事应该怎样", False),
        ("我们的报销有什么风险", False),
        ("天气预报怎么样明天下雨吗请告诉我们", True),
        ("what is it about", False),
        ("", True),
    ],
)
def test_evidence_is_judged_by_topical_words(query: str, weak: bool) -> None:
    assert is_weak(query, [hit("Trains and the bookings.", "Late"), hit("差旅费报销需要发票。")]) is weak
    assert is_weak(query, []) is (bool(topical_words(query)) or not query)


ENGLISH, CHINESE = "Guests pay for their rooms before they leave.", "客人离开之前要付清房费。"


def by_meaning(text: str, similarity: float) -> ChunkHit:
    return hit(text).model_copy(update={"similarity": similarity, "has_words_of_query": False})


@pytest.mark.parametrize(
    ("query", "text", "least"),
    [
        ("When is the money due for a hotel stay?", ENGLISH, LEAST_SIMILARITY),
        ("住宿的钱什么时候交？", CHINESE, LEAST_SIMILARITY),
        ("住宿的钱什么时候交？", ENGLISH, LEAST_SIMILARITY_ACROSS),
        ("When is the money due for a hotel stay?", CHINESE, LEAST_SIMILARITY_ACROSS),
    ],
)
def test_a_meaning_that_is_near_enough_is_evidence(query: str, text: str, least: float) -> None:
    near, far = by_meaning(text, least), by_meaning(text, least - 0.001)
    assert evidence_of(query, [near, far], ["kb_a"]) == (near,)
    assert evidence_of(query, [far], ["kb_a"]) is None
    assert evidence_of(query, [near], ["kb_b"]) == ((near,) if least == LEAST_SIMILARITY else None)


def test_words_are_evidence_whatever_the_meaning_and_hits_of_neither_are_left_out() -> None:
    found, far = hit("Trains and the bookings."), by_meaning("Nothing of the kind.", 0.1)
    assert evidence_of("late bookings", [found, far], []) == (found,)
    assert evidence_of("late bookings", [by_meaning("Trains and the bookings.", 0.1)], []) is None


def test_no_meaning_is_evidence_where_a_language_is_unknown() -> None:
    assert evidence_of("Wann ist die Rechnung fällig?", [by_meaning(ENGLISH, 1.0)], ["kb_a"]) is None
    assert (
        evidence_of("When is the money due?", [by_meaning("Zimmer werden vor der Abreise bezahlt.", 1.0)], []) is None
    )


@pytest.mark.parametrize(
    "query",
    [
        "What are the biggest risks?", "What would you advise?", "Where are we weakest?", "What should we fix first?",
        "主要风险是什么？", "有哪些差距？", "请给出诊断。", "你有什么建议？", "最紧迫的问题是什么？",
        "我们应该优先解决什么问题？",
    ],
)  # fmt: skip
def test_a_question_for_help_alone_names_no_topic(query: str) -> None:
    assert topical_words(query) == frozenset()


def test_what_moved_is_told_access_first() -> None:
    search = make_search("s1", "kb_a", "kb_b")
    same = search.bases
    other_role = (same[0].model_copy(update={"role": MemberRole.READER}), same[1])
    other_version = (same[0], same[1].model_copy(update={"version": 2}))
    assert change_since(search, same) is None
    assert change_since(search, other_version) is Failure.BASE_CHANGED
    assert change_since(search, other_role) is change_since(search, same[:1]) is Failure.ACCESS_CHANGED
    assert change_since(search, (other_version[1],)) is Failure.ACCESS_CHANGED


async def test_what_counts_no_more_is_forgotten() -> None:
    ledger, clock = fake_restricted().ledger, FakeClock()
    forget = ForgetSearches(ledger, clock)
    search = make_search("s1", at=clock.now()).model_copy(update={"bases": ()})
    await ledger.charge(search, [], LIMITS)
    await ledger.settle(settlement(make_record("a1", search, AnswerReason.RISK), search))
    clock.advance(30 * 86_400 - 1)
    await forget.forget()
    assert await ledger.find_search("s1") is not None
    clock.advance(1)
    await forget.forget()
    assert await ledger.find_search("s1") is None


def test_what_an_operator_counts_has_labels_of_closed_lists() -> None:
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    summaries = {"decision": "refuse", "reason": "gate_blocked_figures"}
    before = counted("ballast_safe_summary_total", **summaries), counted("ballast_gate_rejections_total", gate="canary")
    record = make_record("a1", make_search("s1"), GateBlock.FIGURES, gate_codes=(GateCode.FIGURES, GateCode.CANARY))
    LoggingSafeSummaryObserver().decided(record)
    assert counted("ballast_safe_summary_total", **summaries) == before[0] + 1
    assert counted("ballast_gate_rejections_total", gate="canary") == before[1] + 1


def test_every_gate_has_a_block_and_no_two_reasons_are_one_word() -> None:
    assert [gate_blocked(code) for code in GateCode] == [block.value for block in GateBlock]
    words = [reason.value for kind in (PolicyRefusal, Failure, GateBlock) for reason in kind]
    assert len(words) == len(set(words)) == 36
