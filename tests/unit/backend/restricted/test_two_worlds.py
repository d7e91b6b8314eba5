"""Two worlds that differ in names, rare words and figures of a base: a restricted search is answered alike in both."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import NamedTuple

import pytest

from backend.embeddings.ports import MeaningPorts
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.knowledge.telemetry.retrieval import LoggingDescriptionObserver
from backend.restricted.domain.restricted import SearchRequest
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.sealed_search import SealedSearches
from backend.restricted.services.ticketed_knowledge import TicketAccess
from backend.search.services.fused_search import FusedSearch
from shared.models.safe_summary import SummaryVersions
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.clock import FakeClock
from tests.fakes.exact_nearest import ExactNearest
from tests.fakes.http_api import SECRET
from tests.fakes.meaning import FakeEmbedder, FakeQuestions, FakeReranker
from tests.fakes.restricted_ledger import FakeRestrictedLedger, FakeSafeSummaryObserver
from tests.fakes.store_knowledge import FakeKnowledge

VERSIONS = SummaryVersions(policy_version="1", gate_version="2", prompt_version="3", model="m")
UNLIMITED = RestrictedLimits(conversation=10**6, day=10**6, month=10**6)


class World(NamedTuple):
    """What stands in a base at places where another base has something else."""

    person: str
    rose: str
    rare: str
    project: str
    code: str
    figure: str
    person_zh: str
    plain_zh: str
    rare_zh: str
    figure_zh: str


ONE = World("Ruth Calloway", "Grace", "kiln", "Blue Heron", "KX-4471", "317", "王建国", "高峰", "琥珀", "三千二百")
OTHER = World("Aldous Whitby", "Summer", "loom", "Stone Ferry", "QT-9082", "845", "李长江", "方圆", "翡翠", "七千六百")

TEXTS = (
    "The night shift depends on {person}, who alone may open the {rare}. When {rose} is away nobody answers.",
    "Our contract with {project} pays {figure} a week, by number {code}. Suppliers deliver late and nobody checks.",
    "Records are kept on paper. The {rare} was repaired by {person} for {figure} and never inspected after the repair.",
    "Training for new staff takes place when {rose} has time. There is no plan for the training of the guards.",
    "Complaints reach {project} before they reach us. The team answers complaints without a common standard.",
    "夜班只靠{person_zh}一人值守，{rare_zh}库房没有备用钥匙。",
    "合同由{plain_zh}先生负责，每月付{figure_zh}元，供应商经常延迟交货。",
    "培训没有计划，新员工只能问{person_zh}，记录都在纸上。",
)

QUESTIONS = (
    "{word}",
    "Is there a risk with {word}?",
    "What is weak around {word} and who decides?",
    "tell me about {word} {word} {word}",
    "How does {word} affect our training of staff?",
    "Do suppliers complain about {word}?",
    "weather forecast ferry tickets for {word}",
    "{word}有什么风险？",
    "我们对{word}的依赖有多大",
    "培训计划和{word}之间有什么问题",
    "明天的天气适合{word}去海边吗",
)

PLAIN = ("training", "late suppliers", "weather", "football results", "培训", "供应商延迟", "天气预报", "足球比赛")


def words_of(world: World) -> Iterator[str]:
    yield from world
    yield from world.person.split()
    yield world.rose.lower()
    yield f"{world.person} {world.rare}"


def queries() -> list[str]:
    words = dict.fromkeys((*words_of(ONE), *words_of(OTHER), *PLAIN))
    return [question.format(word=word) for question, word in product(QUESTIONS, words)]


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
    searches = SealedSearches(access, Ranked(knowledge, fused), ledger, audit, UNLIMITED, SECRET)
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
