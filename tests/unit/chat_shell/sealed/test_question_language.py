"""Which chunks the secondary model is shown: those in the question's language, and others that may be translated."""

import json

import pytest

from chat_shell.sealed.judge import JudgedCase, JudgedDocument, verdict_of
from chat_shell.sealed.outcome import SealedSearchResult
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.question_language import KEPT_LANGUAGES, language_of_chunk, select_evidence
from tests.fakes.sealed_room import FakeSealedBackend, RoomStage, protected_chunk

ENGLISH_TEXT, CHINESE_TEXT = "Only the keeper may open the valve.", "只有值班人员可以开启阀门。"
FRENCH_TEXT = "Seul le gardien peut ouvrir la vanne du réservoir."
ENGLISH, CHINESE = protected_chunk(ENGLISH_TEXT, "c_en"), protected_chunk(CHINESE_TEXT, "c_zh")
FRENCH, NUMBERS = protected_chunk(FRENCH_TEXT, "c_fr"), protected_chunk("| 12 | 34 |", "c_no")
ALL = (ENGLISH, CHINESE, FRENCH, NUMBERS)


def shown_ids(last_message: str, query: str = "the valve", *translatable: str) -> list[str]:
    return [chunk.chunk_id for chunk in select_evidence((last_message, query), ALL, translatable).chunks]


@pytest.mark.parametrize(
    ("last_message", "query", "shown"),
    [
        ("Where are we weak?", "阀门", ["c_en"]),
        ("我们哪里薄弱？", "the valve", ["c_zh"]),
        ("???", "weaknesses of the valve", ["c_en"]),
        ("", "阀门的薄弱环节", ["c_zh"]),
        ("?", "2026", []),
        ("Où sommes-nous faibles avec la vanne ?", "the valve", []),
    ],
)
def test_the_language_of_the_users_message_decides_and_else_that_of_the_query(
    last_message: str, query: str, shown: list[str]
):
    assert shown_ids(last_message, query) == shown


def test_of_a_base_whose_owner_allows_it_every_chunk_is_shown():
    for last_message in ("Where are we weak?", "我们哪里薄弱？", "?"):
        assert shown_ids(last_message, "", "kb_r") == ["c_en", "c_zh", "c_fr", "c_no"]
    assert shown_ids("Where are we weak?", "", "kb_other") == ["c_en"]


async def asked(*chunks: ProtectedChunk, last_message: str, translatable: frozenset[str] = frozenset()) -> RoomStage:
    found = SealedSearchResult("s_1", chunks=chunks, translatable_base_ids=translatable)
    stage = RoomStage(backend=FakeSealedBackend(found))
    await stage.ask(last_message=last_message)
    return stage


async def test_what_is_withheld_from_the_model_is_read_by_the_gate():
    stage = await asked(ENGLISH, CHINESE, last_message="Where are we weak?")
    assert (ENGLISH_TEXT in str(stage.model.prompts), CHINESE_TEXT in str(stage.model.prompts)) == (True, False)
    ((chunks, _, _, siblings, *_),) = stage.gate.cases
    assert ([one.chunk_id for one in chunks], [one.chunk_id for one in siblings]) == (["c_en"], ["c_zh"])
    (outcome,) = stage.backend.outcomes
    assert (outcome.chunks_found, outcome.chunks_sent) == (2, 1)


@pytest.mark.parametrize(("last_message", "name"), [("Where are we weak?", "English"), ("我们哪里薄弱？", "Chinese")])
async def test_the_model_is_told_the_language_of_the_question(last_message: str, name: str):
    stage = await asked(ENGLISH, CHINESE, last_message=last_message, translatable=frozenset({"kb_r"}))
    data = stage.model.prompts[0][1]["content"]
    assert f"<language-token1>\n{name}" in data
    assert ENGLISH_TEXT in data
    assert CHINESE_TEXT in data


def test_the_language_of_a_text_is_found_once():
    shown_ids("Where are we weak?")
    before = language_of_chunk.cache_info()
    shown_ids("Where are we strong?")
    after = language_of_chunk.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + len(ALL))
    assert after.maxsize == KEPT_LANGUAGES


def judged(user_message: str, said: str, *texts: str) -> tuple[object, object]:
    """Return the verdict that an auditor gets on an answer of one sentence, and its codes."""
    lists: dict[str, object] = {"observations": [], "risks": [], "recommended_actions": []}
    reply = {"decision": "answer", "reason": "gap", "confidence": "low", "summary": said, **lists}
    documents = tuple(JudgedDocument(title="a", heading_path=(), text=text) for text in texts)
    case = JudgedCase(documents=documents, user_messages=(user_message,), query="vanne", reply=json.dumps(reply))
    verdict = verdict_of(case)
    return verdict["verdict"], verdict["codes"]


@pytest.mark.parametrize("text", [ENGLISH_TEXT, CHINESE_TEXT, FRENCH_TEXT, "| 12 | 34 |"])
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where are we weak?", "It may be better to ask others as well."),
        ("我们哪里薄弱？", "应当让更多的人参与。"),
        ("Où sommes-nous faibles avec la vanne ?", "Nous sommes faibles avec la vanne."),
    ],
)
def test_an_auditor_is_told_that_an_answer_leaves_just_where_its_evidence_would_be_shown(
    question: str, said: str, text: str
):
    is_shown = bool(select_evidence((question, "vanne"), [protected_chunk(text)], ()).chunks)
    assert judged(question, said, text) == (("released", []) if is_shown else ("blocked", ["language"]))
    assert judged(question, said) == ("released", [])


def test_an_auditor_has_a_reply_compared_with_what_would_not_be_shown_too():
    shown = "The keeper may rest."
    strange = "übrige Beschäftigte warten gemeinsam drüben hinten, niemand schläft"
    other = f"Nur Wächter may open the valve when others are asleep, {strange}."
    said = "It may open the valve when others are asleep."
    evidence = select_evidence(("Where are we weak?", ""), [protected_chunk(shown), protected_chunk(other)], ())
    assert (len(evidence.chunks), len(evidence.withheld)) == (1, 1)
    assert judged("Where are we weak?", "It may be better to ask.", shown, other)[0] == "released"
    assert judged("Where are we weak?", said, shown)[0] == "released"
    assert judged("Where are we weak?", said, shown, other)[0] == "blocked"
