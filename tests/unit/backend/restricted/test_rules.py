"""Rules of restricted searches that need no ledger: budgets, keys, what moved, clean-up, figures."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from backend.foundation.telemetry.outcomes import OUTCOMES
from backend.knowledge.domain.knowledge import MemberRole
from backend.restricted.domain.released_results import normalise_query, result_key, user_hash
from backend.restricted.domain.restricted import Candidate, RefusalHistory, SearchedBase, change_since
from backend.restricted.domain.restricted_budget import BaseUsage, RestrictedLimits, add_refusal, admit
from backend.restricted.services.close_searches import ForgetSearches
from backend.restricted.telemetry.restricted import LoggingSafeSummaryObserver
from shared.models.safe_summary import AnswerReason, Failure, GateBlock, GateCode, PolicyRefusal, name_gate_block
from tests.contract.knowledge_cases import T0
from tests.contract.restricted_cases import SIGNER, VERSIONS, fake_restricted, make_record, make_search, settlement
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
        refusals = add_refusal(refusals, T0 + timedelta(minutes=number))
    assert refusals.paused_until == T0 + timedelta(minutes=4 + 15)
    assert len(add_refusal(refusals, T0 + timedelta(minutes=9)).refused_at) == 0


@given(st.text())
def test_normalising_twice_is_normalising_once(query: str) -> None:
    assert normalise_query(normalise_query(query)) == normalise_query(query)


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
    await ledger.settle(settlement(make_record("a1", search, AnswerReason.RISK), search), SIGNER)
    clock.advance(30 * 86_400 - 1)
    await forget.forget()
    assert await ledger.find_search("s1") is not None
    clock.advance(1)
    await forget.forget()
    assert await ledger.find_search("s1") is None


def test_what_an_operator_counts_has_labels_of_closed_lists() -> None:
    def counted(name: str, **labels: str) -> float:
        return OUTCOMES.get_sample_value(name, labels) or 0.0

    summaries = {"decision": "refuse", "reason": "gate_blocked_figures"}
    before = counted("ballast_safe_summary_total", **summaries), counted("ballast_gate_rejections_total", gate="canary")
    record = make_record("a1", make_search("s1"), GateBlock.FIGURES, gate_codes=(GateCode.FIGURES, GateCode.CANARY))
    LoggingSafeSummaryObserver().note_decision(record)
    assert counted("ballast_safe_summary_total", **summaries) == before[0] + 1
    assert counted("ballast_gate_rejections_total", gate="canary") == before[1] + 1


def test_every_gate_has_a_block_and_no_two_reasons_are_one_word() -> None:
    assert [name_gate_block(code) for code in GateCode] == [block.value for block in GateBlock]
    words = [reason.value for kind in (PolicyRefusal, Failure, GateBlock) for reason in kind]
    assert len(words) == len(set(words)) == 37
