"""Answers that are weighed by their meaning: what retells the source does not leave, and facts that are told count."""

from typing import Any

import pytest

from backend.embeddings.domain import TextKind, WritingSystem
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.domain.told_facts import is_overspent, split_clauses, split_sentences
from backend.restricted.services.meaning_scale import GENERAL_FINDINGS, MeaningScale
from shared.errors import Unavailable
from shared.models.knowledge_api import ToldFact
from tests.fakes.meaning import FakeEmbedder
from tests.unit.backend.conftest import Members
from tests.unit.backend.restricted.internal_api import ask, outcome, report, sealed_part, ticket_for

STAFF = "# Staff\n\nThe night guard sleeps at work. Nobody checks the doors in winter."
SLEEPS = "The night guard sleeps at work."
NEAR = "At work the night guard sleeps."
FAR = "Agree on clear duties."


@pytest.fixture
async def embedder(members: Members) -> FakeEmbedder:
    """What weighs answers of a base with one document of two sentences; one sentence of a document may be told."""
    embedder = FakeEmbedder()
    members.house.scale = MeaningScale(embedder, "model 1")
    members.house.limits = RestrictedLimits(conversation=8, day=20, month=60, facts=1)
    members.rebuild()
    await members.put("a.md", STAFF)
    return embedder


async def weigh(members: Members, search_id: str, *texts: str) -> Any:
    answer = await ask(members, "weigh", ticket_for(members, "ana"), search_id=search_id, texts=list(texts))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_sentence_that_says_what_one_of_the_source_says_is_named(
    members: Members, embedder: FakeEmbedder
) -> None:
    found = await sealed_part(members, query="night guard")
    assert found["is_weighed"]
    weighed = await weigh(members, found["search_id"], f"{FAR} {NEAR}")
    assert weighed["retold"] == [NEAR]
    assert len(weighed["facts"]) == 1
    assert "guard" not in str(weighed["facts"])
    assert (await weigh(members, found["search_id"], FAR)) == {"retold": [], "facts": []}


async def test_sentences_of_the_source_are_embedded_once(members: Members, embedder: FakeEmbedder) -> None:
    found = await sealed_part(members, query="night guard")
    await weigh(members, found["search_id"], NEAR)
    before = len(embedder.texts)
    await weigh(members, found["search_id"], FAR)
    assert embedder.texts[before:] == [FAR]


async def test_facts_are_charged_put_on_record_and_refused_when_they_are_too_many(
    members: Members, embedder: FakeEmbedder
) -> None:
    for query, facts, reason in (
        ("guard", ["one"], "risk"),
        ("night", ["one"], "risk"),
        ("work", ["two"], "budget_facts"),
    ):
        search_id = (await sealed_part(members, query=query))["search_id"]
        told = [{"document_id": "d", "digest": digest} for digest in facts]
        answer = (await report(members, **outcome(members, search_id, facts=told))).json()
        assert answer == {"recorded": True, "release": reason == "risk", "reason": reason}
        again = (await report(members, **outcome(members, search_id, facts=told))).json()
        assert again == answer
    assert [(record.reason, record.facts) for record in members.house.ledger.records] == [
        ("risk", 1), ("risk", 1), ("budget_facts", None),
    ]  # fmt: skip
    versions = members.house.ledger.records[0].versions
    assert versions is not None and versions.meaning_version.startswith("model 1 ")
    assert members.house.safe_summaries.decided_records[2].reason == "budget_facts"


async def test_prose_that_was_not_weighed_is_not_released(members: Members, embedder: FakeEmbedder) -> None:
    search_id = (await sealed_part(members, query="night guard"))["search_id"]
    assert (await report(members, **outcome(members, search_id))).status_code == 400
    assert members.house.ledger.records == []


async def test_where_the_embedder_is_away_nothing_is_weighed(members: Members, embedder: FakeEmbedder) -> None:
    search_id = (await sealed_part(members, query="night guard"))["search_id"]
    embedder.failure = Unavailable("away")
    ticket = ticket_for(members, "ana")
    assert (await ask(members, "weigh", ticket, search_id=search_id, texts=[FAR])).status_code == 503


async def test_the_search_of_another_turn_is_not_weighed(members: Members, embedder: FakeEmbedder) -> None:
    search_id = (await sealed_part(members, query="night guard"))["search_id"]
    other = ticket_for(members, "rae")
    assert (await ask(members, "weigh", other, search_id=search_id, texts=[FAR])).status_code == 404


async def test_without_an_embedder_all_is_as_it_was(members: Members) -> None:
    await members.put("a.md", STAFF)
    found = await sealed_part(members, query="night guard")
    assert not found["is_weighed"]
    assert (await weigh(members, found["search_id"], NEAR)) == {"retold": [], "facts": []}
    assert (await report(members, **outcome(members, found["search_id"]))).json()["release"]
    assert members.house.ledger.records[0].facts is None


TWO = {WritingSystem.LATIN: (FAR,), WritingSystem.HAN: ("明确职责。",)}


async def test_what_is_nearer_to_what_can_be_said_of_any_source_is_no_retelling() -> None:
    scale = MeaningScale(FakeEmbedder(), "model", general=TWO)
    said = FAR, NEAR, "明确职责。"
    excess = await scale.measure(said, (SLEEPS, FAR))
    assert (excess[0] <= 1e-6).all()
    assert excess[1][0] > 0.5 > 0 > excess[1][1] - 0.5
    assert (excess[2] <= 1e-6).all()


async def test_general_findings_are_embedded_once() -> None:
    embedder = FakeEmbedder()
    scale = MeaningScale(embedder, "model")
    await scale.prepare()
    assert len(embedder.texts) == sum(map(len, GENERAL_FINDINGS.values()))
    await scale.prepare()
    await scale.measure([FAR], [SLEEPS])
    assert embedder.calls[len(GENERAL_FINDINGS) :] == [((FAR,), TextKind.PASSAGE), ((SLEEPS,), TextKind.PASSAGE)]


def test_what_weighs_answers_names_the_model_its_file_and_the_findings() -> None:
    embedder, other = FakeEmbedder(), {WritingSystem.LATIN: (FAR,)}
    scales = (
        MeaningScale(embedder, "a"),
        MeaningScale(embedder, "b"),
        MeaningScale(embedder, "a", "00"),
        MeaningScale(embedder, "a", general=other),
    )
    versions = {scale.version for scale in scales}
    assert len(versions) == 4


def test_sentences_end_where_they_end() -> None:
    assert split_sentences("One is 2. - Two?\n第三。第四；\n---\n") == ["One is 2.", "- Two?", "第三。", "第四；"]


def test_each_document_has_a_budget_and_what_was_told_is_free() -> None:
    def facts(*named: str) -> list[ToldFact]:
        return [ToldFact(document_id=name[0], digest=name) for name in named]

    assert not is_overspent(facts("a1", "a2", "b1"), facts("a1", "a2", "b2"), 2)
    assert is_overspent(facts("a1", "a2", "b1"), facts("a3"), 2)
    assert not is_overspent(facts("a1", "a2", "a3"), facts("a1"), 2)


def test_a_clause_may_tell_a_fact_of_its_own() -> None:
    assert split_clauses("He left, and she stayed.") == ["He left, and she stayed.", "He left", "she stayed"]
    assert split_clauses("门锁了，没人看。") == ["门锁了，没人看。", "门锁了", "没人看"]
    assert split_clauses("He left.") == ["He left."]
