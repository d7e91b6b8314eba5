"""What the demo model says of different topics, as the secondary model and through the real gate."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import deploy.demo
from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.pre_screen import pre_screen
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.summary_prompt import Rewrite, SummaryPrompt, new_token, write_prose
from chat_shell.sealed.verdicts import Blocked, Released
from deploy.demo.replies import reply_to
from deploy.demo.topics import ANYTHING, TOPICS, topics_of
from shared.models.safe_summary import GateCode
from tests.fakes.sealed_room import protected_chunk

DEMO_KNOWLEDGE = Path(deploy.demo.__file__).with_name("knowledge")
BASES = ("contracts", "handbook", "handbook-zh")
ENGLISH = (
    "Where is our night shift cover weak?",
    "Are there single points of failure in payroll?",
    "How healthy is our supplier relationship?",
    "What are the risks in how we release firmware?",
    "Do we learn enough from incidents?",
    "How should we train new colleagues?",
    "Do we treat customers fairly when parcels get lost?",
)
CHINESE = (
    "夜班人手有什么风险？",
    "工资发放有没有单点？",
    "我们和供应商的关系健康吗？",
    "固件发布哪里薄弱？",
    "我们从故障中学得怎么样？",
    "新人培训应该怎么改进？",
    "我们对投诉的客户公平吗？",
)


def chunks_of(base: str) -> list[ProtectedChunk]:
    files = sorted((DEMO_KNOWLEDGE / base).glob("*.md"))
    return [protected_chunk(file.read_text(encoding="utf-8"), f"c_{at}") for at, file in enumerate(files)]


def reply_over(chunks: Sequence[ProtectedChunk], query: str) -> str:
    return reply_over_prompt(SummaryPrompt(query, write_prose("English"), chunks, new_token)).decode()


def reply_over_prompt(prompt: SummaryPrompt, rewrite: Rewrite | None = None) -> bytes:
    return reply_to({"messages": [dict(message) for message in prompt.for_model(rewrite)]}).text.encode()


def summary_of(query: str, *evidence: str) -> str:
    chunks = [protected_chunk(text, f"c_{at}") for at, text in enumerate(evidence)]
    return json.loads(reply_over(chunks, query))["summary"]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("questions", [ENGLISH, CHINESE])
def test_different_questions_get_different_summaries(base: str, questions: tuple[str, ...]):
    chunks, released = chunks_of(base), list[str]()
    for query in questions:
        assert pre_screen(query, query) is None
        reply = reply_over(chunks, query)
        assert isinstance(judge(reply.encode(), prepare(chunks, query, ())), Released), query
        released.append(json.loads(reply)["summary"])
    assert len(set(released)) >= len(questions) - 1


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("language", "query"), [(0, "What is weak?"), (1, "哪里薄弱？")])
def test_the_gate_takes_the_words_of_every_topic(base: str, language: int, query: str):
    case = prepare(chunks_of(base), query, ())
    for topic in (*TOPICS.values(), ANYTHING):
        words = topic.words[language]
        reply = {"decision": "answer", "reason": "gap", "summary": words.summary, "confidence": "low"} | {
            "observations": [words.observation],
            "risks": [words.risk],
            "recommended_actions": [words.action],
        }
        assert isinstance(judge(json.dumps(reply).encode(), case), Released), words


def test_where_the_question_has_no_topic_the_passage_that_fits_it_best_has():
    about_winter, about_money = "Up north batteries freeze in winter.", "Down south we pay fees for each parcel."
    winter = summary_of("Where is the north fragile?", about_money, about_winter)
    money = summary_of("Where is the south fragile?", about_money, about_winter)
    assert winter == TOPICS["upkeep"].words[0].summary
    assert money == TOPICS["money"].words[0].summary


def test_the_topic_of_the_question_comes_before_those_of_the_passages():
    found = topics_of("Is training good?", "We pay fees, prices and costs, and approve exceptions.")
    assert found == [TOPICS["training"], TOPICS["money"], TOPICS["approval"]]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("Why do buses come late?", ANYTHING.words[0].summary),
        ("客服的奖金办法会带来什么坏处？", ANYTHING.words[1].risk),
    ],
)
def test_whoever_asks_for_a_diagnosis_or_for_risks_is_answered_without_a_topic(query: str, said: str):
    assert summary_of(query, "Nothing of note.") == said


def test_what_has_nothing_to_do_with_the_evidence_is_refused():
    refused = json.loads(reply_over([protected_chunk("We pay fees.")], "Tell me more."))
    assert (refused["decision"], refused["reason"]) == ("refuse", "out_of_scope")


@pytest.mark.parametrize("asks_after", ["risk", "advice"])
def test_a_summary_begins_with_what_the_question_is_after(asks_after: str):
    question = {"risk": "What could go wrong with fees?", "advice": "How could fees be improved?"}[asks_after]
    form = json.loads(reply_over([protected_chunk("We pay fees.")], question))
    money = TOPICS["money"].words[0]
    lead, unsaid = {"risk": (money.risk, "risks"), "advice": (money.action, "recommended_actions")}[asks_after]
    assert (form["reason"], form["summary"], form[unsaid]) == (asks_after, lead, [])
    assert form["observations"] == [money.summary, money.observation]


@pytest.mark.parametrize(
    "question",
    ["Explain in detail how our partner contracts could be improved.", "请详细说明我们的赔付流程应如何改进。"],
)
def test_asked_for_details_it_quotes_and_then_writes_what_may_leave(question: str):
    assert pre_screen(question, question) is None
    chunks = chunks_of("contracts")
    prompt = SummaryPrompt(question, write_prose("English"), chunks, new_token)
    case = prepare(chunks, question, prompt.canaries())
    careless = reply_over_prompt(prompt)
    blocked = judge(careless, case)
    assert isinstance(blocked, Blocked)
    assert GateCode.OVERLAP in blocked.codes
    assert GateCode.CANARY not in blocked.codes
    rewritten = reply_over_prompt(prompt, Rewrite(careless, blocked.codes, blocked.phrases))
    assert isinstance(judge(rewritten, case), Released)
