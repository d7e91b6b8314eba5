"""Restricted searches over real databases: from ticket to release, and many at once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Connection, text

from backend.agents.services.agents import open_agent_files
from backend.foundation.sql.database import Database
from backend.knowledge.domain.knowledge import MemberRole, strictest_mode
from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver
from backend.restricted.domain.restricted import AuditQuery, AuditRecord, SearchRequest
from backend.restricted.services.close_searches import CloseSearches, ForgetSearches
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.sealed_outcomes import Outcome, SealedOutcomes
from backend.restricted.services.sealed_search import SealedSearches, SearchTerms
from backend.restricted.services.ticketed_knowledge import TicketAccess
from backend.restricted.services.weigh_answers import AnswerWeighing
from backend.restricted.sql.audit import SqlAuditTrail
from backend.restricted.sql.ledger import SqlRestrictedLedger
from backend.restricted.sql.tables import metadata
from backend.search.sql.retrieval import SqlRetrieval
from shared.errors import Conflict
from shared.models.execution import AccessMode
from shared.models.safe_summary import AnswerReason, Decision, Failure, SummaryVersions
from tests.contract.knowledge_cases import make_base, put
from tests.contract.restricted_cases import LIMITS, RELEASED, VERSIONS
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.clock import FakeClock
from tests.fakes.restricted_ledger import FakeSafeSummaryObserver
from tests.fakes.sql_knowledge import knowledge_store, word_runs
from tests.fakes.store_agents import FakeAgentStore

SECRET = "secret"
TURN_TIME = timedelta(minutes=1)
QUERY = "quarterly zinc targets"
PASSAGE = "Quarterly zinc targets are missed in the Harbour plant"


class House(NamedTuple):
    """The use cases over a database, whose base `kb_a` has 100 chunks; bob is restricted in it."""

    searches: SealedSearches
    outcomes: SealedOutcomes
    closing: CloseSearches
    knowledge: SqlKnowledgeStore
    ledger: SqlRestrictedLedger
    database: Database
    clock: FakeClock

    def ticket(self, turn: int = 0) -> str:
        """Return bob's ticket for a turn; each turn is in a conversation of its own."""
        claim = Ticket(
            user_id="bob",
            tenant="acme",
            conversation_id=f"conv_{turn}",
            turn_id=f"resp_{turn}",
            base_ids=("kb_a",),
            search=SearchOptions(),
            expires_at=self.clock.now() + TURN_TIME,
        )
        return sign_ticket(claim, SECRET)


@pytest.fixture(params=first_of("sqlite", "postgresql"))
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        clock = FakeClock()
        store, ledger = (
            knowledge_store(database, clock),
            SqlRestrictedLedger(database),
        )
        await store.create_base(make_base(), "ann")
        await put(store, "a.md", [f"{PASSAGE} {number}." for number in range(100)])
        await store.set_member("kb_a", "bob", MemberRole.RESTRICTED_ANALYST)
        audit = RestrictedAudit(ledger, FakeSafeSummaryObserver(), clock, SECRET)
        retrieval = SqlRetrieval(database)
        descriptions = SafeDescriptions(word_runs(database), retrieval, LoggingDescriptionObserver())
        access = TicketAccess(store, partial(open_agent_files, FakeAgentStore()), descriptions, audit, clock, SECRET)
        weighing = AnswerWeighing(access, ledger, None, 0, SECRET)
        yield House(
            SealedSearches(access, retrieval, ledger, audit, weighing, SearchTerms(LIMITS, SECRET)),
            SealedOutcomes(access, ledger, audit, weighing, clock, SECRET),
            CloseSearches(ledger, audit, clock, TURN_TIME),
            store,
            ledger,
            database,
            clock,
        )


def ask(query: str = QUERY) -> tuple[SearchRequest, SummaryVersions]:
    return SearchRequest(query, ("kb_a",), 24, 500), VERSIONS


def answer(search_id: str) -> Outcome:
    return Outcome(
        search_id=search_id,
        base_ids=("kb_a",),
        versions=VERSIONS,
        decision=Decision.ANSWER,
        reason=AnswerReason.RISK,
        gate_codes=(),
        rewrites=0,
        latency_ms=5,
        chunks_sent=20,
        canary_hits=0,
        released=RELEASED,
    )


async def test_a_search_is_cut_released_kept_and_forgotten(house: House) -> None:
    searches, outcomes = house.searches, house.outcomes
    first = await searches.search(house.ticket(), *ask())
    assert (len(first.chunks), first.refusal, first.whole) == (20, None, False)
    told = await outcomes.report(house.ticket(), answer(first.search_id))
    assert (told.release, told.reason) == (True, AnswerReason.RISK)
    again = await searches.search(house.ticket(1), *ask(QUERY.upper()))
    assert (again.released, again.chunks) == (RELEASED, ())
    await put(house.knowledge, "b.md", ["Zinc."])
    newer = await searches.search(house.ticket(1), *ask())
    assert (newer.released, len(newer.chunks)) == (None, 20)
    later = await outcomes.report(house.ticket(1), answer(newer.search_id))
    assert (later.release, later.reason) == (True, AnswerReason.RISK)
    house.clock.advance(30 * 86_400)
    await ForgetSearches(house.ledger, house.clock).forget()
    assert await house.ledger.find_search(first.search_id) is None
    assert (await searches.search(house.ticket(2), *ask())).released is None


async def test_a_search_whose_outcome_never_comes_is_on_record_as_refused(house: House) -> None:
    reported = await house.searches.search(house.ticket(), *ask())
    await house.outcomes.report(house.ticket(), answer(reported.search_id))
    lost = await house.searches.search(house.ticket(1), *ask("zinc of the plant"))
    house.clock.advance(119)
    await house.closing.close()
    assert [record.search_id for record in await records(house)] == [reported.search_id]
    house.clock.advance(1)
    await house.closing.close()
    await house.closing.close()
    _, record = await records(house)
    assert (record.search_id, record.turn_id, record.decision) == (lost.search_id, "resp_1", Decision.REFUSE)
    assert (record.reason, record.chunks_sent) == (Failure.AUDIT_UNAVAILABLE, len(lost.chunks))
    assert record.budget_after is not None
    with pytest.raises(Conflict):
        await house.outcomes.report(house.ticket(1), answer(lost.search_id))


async def test_a_search_of_a_base_that_is_gone_is_closed_before_it_is_forgotten(house: House) -> None:
    lost = await house.searches.search(house.ticket(), *ask())
    await house.knowledge.delete_base("kb_a")
    house.clock.advance(40 * 86_400)
    forget = ForgetSearches(house.ledger, house.clock)
    await forget.forget()
    await house.closing.close()
    assert [record.search_id for record in await records(house)] == [lost.search_id]
    await forget.forget()
    assert await house.ledger.find_search(lost.search_id) is None


async def records(house: House) -> tuple[AuditRecord, ...]:
    """Return the audit, oldest first."""
    return (await SqlAuditTrail(house.database).page("acme", AuditQuery(limit=10, order="asc"))).records


async def test_50_searches_at_once_share_one_budget(house: House) -> None:
    answers = await asyncio.gather(
        *(house.searches.search(house.ticket(turn), *ask(f"{QUERY} {turn}")) for turn in range(50))
    )
    refusals = [one.refusal for one in answers]
    sent = {chunk.hit.chunk.id for one in answers for chunk in one.chunks}
    assert len(sent) == 20
    assert refusals.count(None) <= LIMITS.day
    assert set(refusals) - {None} <= {Failure.BUDGET_DAY, Failure.BUDGET_CHUNKS}
    records, _ = await SqlAuditTrail(house.database).page("acme", AuditQuery(limit=99))
    assert len(records) == 50 - refusals.count(None)


async def test_no_word_of_query_or_base_is_in_the_tables_of_restricted_searches(house: House) -> None:
    found = await house.searches.search(house.ticket(), *ask(f"{QUERY} walrus"))
    await house.outcomes.report(house.ticket(), answer(found.search_id))
    await house.searches.search(house.ticket(), *ask("walrus"))
    ours = [name for name in metadata.tables if name.startswith(("restricted_", "served_", "released_", "safe_"))]

    def rows(connection: Connection) -> str:
        return " ".join(str(connection.execute(text(f"SELECT * FROM {name}")).all()) for name in ours)

    written = (await house.database.read(rows)).lower()
    assert len(ours) == 7
    assert found.search_id in written
    for word in ("zinc", "harbour", "walrus", "guide"):
        assert word not in written


@pytest.mark.parametrize("role", ["", "unheard_of", "OWNER"])
async def test_a_role_that_is_not_known_is_a_restricted_one(house: House, role: str) -> None:
    def set_role(connection: Connection) -> None:
        connection.execute(text("UPDATE knowledge_member SET role = :role WHERE user_id = 'bob'"), {"role": role})

    await house.database.write(set_role)
    (binding,) = await house.knowledge.bindings("acme", "bob", ["kb_a"])
    assert strictest_mode([binding]) is AccessMode.RESTRICTED
    assert (await house.knowledge.members("kb_a"))["bob"] is MemberRole.RESTRICTED_ANALYST
