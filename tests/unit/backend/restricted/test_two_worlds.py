"""Two worlds that differ in names, rare words and figures of a base: a restricted search is answered alike in both."""

from datetime import timedelta

import pytest

from backend.embeddings.ports import MeaningPorts
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver
from backend.restricted.domain.restricted import SearchRequest
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.sealed_search import SealedSearches, SearchTerms
from backend.restricted.services.ticketed_knowledge import TicketAccess
from backend.restricted.services.weigh_answers import AnswerWeighing
from backend.search.services.fused_search import FusedSearch
from shared.models.safe_summary import SummaryVersions
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.clock import FakeClock
from tests.fakes.exact_nearest import ExactNearest
from tests.fakes.http_api import SECRET
from tests.fakes.meaning import FakeEmbedder, FakeQuestions, FakeReranker
from tests.fakes.restricted_ledger import FakeRestrictedLedger, FakeSafeSummaryObserver
from tests.fakes.store_knowledge import FakeKnowledge
from tests.leaks.worlds import ONE, OTHER, TEXTS, World, queries

VERSIONS = SummaryVersions(policy_version="1", gate_version="2", prompt_version="3", model="m")
UNLIMITED = RestrictedLimits(conversation=10**6, day=10**6, month=10**6)


class Ranked:
    """A `Retrieval` that ranks by words and meaning."""

    def __init__(self, words: FakeKnowledge, ranking: FusedSearch) -> None:
        self.search = ranking.search
        self.read_all = words.read_all
        self.beginnings = words.beginnings


async def _no_file_indexes(*_: object) -> frozenset[str]:
    return frozenset()


async def searched(world: World, vectors: str) -> list[str]:
    """Return how each question ends in this world."""
    knowledge, clock = FakeKnowledge(), FakeClock()
    await knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
    await knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
    texts = [text.format(**world._asdict()) for text in TEXTS]
    for place, text in enumerate(texts):
        await put(knowledge, f"{place}.md", [text], heading_path=())
    embedder, ledger = FakeEmbedder(dimension=48), FakeRestrictedLedger(knowledge)
    nearest = ExactNearest(knowledge, embedder)
    nearest.unembedded = {"none": texts, "some": texts[::2], "all": ()}[vectors]
    reranker = FakeReranker()
    reranker.is_away = True
    fused = FusedSearch(knowledge, nearest, MeaningPorts(embedder, FakeQuestions(embedder), reranker))
    audit = RestrictedAudit(ledger, FakeSafeSummaryObserver(), clock, SECRET)

    descriptions = SafeDescriptions(knowledge, knowledge, LoggingDescriptionObserver())
    access = TicketAccess(knowledge, _no_file_indexes, descriptions, audit, clock, SECRET)
    weighing = AnswerWeighing(access, ledger, None, 0, SECRET)
    searches = SealedSearches(access, Ranked(knowledge, fused), ledger, audit, weighing, SearchTerms(UNLIMITED, SECRET))
    ends: list[str] = []
    for place, query in enumerate(queries()):
        clock.advance(3_600)  # a pause ends
        ticket = Ticket(
            user_id="ada",
            tenant="default",
            conversation_id="conv_1",
            turn_id=f"resp_{place}",
            base_ids=("kb_a",),
            search=SearchOptions(),
            expires_at=clock.now() + timedelta(minutes=1),
        )
        answer = await searches.search(sign_ticket(ticket, SECRET), SearchRequest(query, (), 24, 0), VERSIONS)
        ends.append(f"{query}: {answer.refusal or 'evidence'}")
    return ends


@pytest.mark.parametrize("vectors", ["none", "some", "all"])
async def test_no_answer_tells_whether_a_name_a_rare_word_or_a_figure_stands_in_a_base(vectors: str) -> None:
    one, other = await searched(ONE, vectors), await searched(OTHER, vectors)
    assert len(one) >= 300
    differing = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    assert differing == [], f"{len(differing)} of {len(one)}"
    assert {end.rpartition(": ")[2] for end in one} == {"evidence", "insufficient_evidence"}
