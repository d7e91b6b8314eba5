"""Bases of records: a role that stands for a subject is neither asked about nor spoken of."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from chat_shell.sealed.judge import JudgedCase, verdict_of
from chat_shell.sealed.outcome import SealedSearchResult
from shared.disclosure.frame import BaseRules
from shared.models.safe_summary import PolicyRefusal
from tests.fakes.sealed_room import FakeSealedBackend, FakeSecondary, RoomStage, protected_chunk
from tests.unit.chat_shell.sealed.gate.planting import reply

ENGLISH = ("Ruth Pellow, teacher. Sleeps badly.", "Owen Strachey, driver. Is ill.", "Joan Marsh, cook. Wants to leave.")
CHINESE = ("韩素琴，班主任。睡眠不好。", "申建国，司机。生病。", "马秀兰，厨师。想离职。")


def judged(texts: Sequence[str], said: str, asked: str, content: str) -> dict[str, object]:
    documents: list[Any] = [{"title": "Staff", "heading_path": [], "text": text} for text in texts]
    case: dict[str, Any] = {
        "documents": documents,
        "user_messages": [asked],
        "query": asked,
        "reply": reply(said).decode(),
    }
    return verdict_of(JudgedCase.model_validate_json(orjson.dumps(case | {"content": content})))


@pytest.mark.parametrize(
    ("texts", "said", "asked"),
    [
        (ENGLISH, "The teacher needs support.", "Where are the risks?"),
        (ENGLISH, "Support for the cook is missing.", "Where are the risks?"),
        (CHINESE, "班主任需要支持。", "风险在哪里？"),
    ],
)
def test_no_answer_over_records_names_a_role_that_stands_for_a_subject(texts: Sequence[str], said: str, asked: str):
    assert judged(texts, said, asked, "documents")["verdict"] == "released"
    assert judged(texts, said, asked, "records")["codes"] == ["identifiers"]


@pytest.mark.parametrize(("texts", "asked"), [(ENGLISH, "What keeps the teacher?"), (CHINESE, "班主任有什么问题？")])
def test_a_question_that_names_a_role_of_records_is_refused(texts: Sequence[str], asked: str):
    assert judged(texts, "Support is missing.", asked, "records")["pre_screen"] == "knowledge_base_question"
    assert judged(texts, "Support is missing.", asked, "documents")["pre_screen"] is None


def test_a_question_about_the_whole_and_its_answer_pass():
    verdict = judged(ENGLISH, "Support is missing. Agree on it early.", "Where are the risks?", "records")
    assert (verdict["verdict"], verdict["pre_screen"]) == ("released", None)


async def test_the_room_asks_no_model_about_a_role_of_records():
    chunks = tuple(protected_chunk(text=text) for text in ENGLISH)
    found = SealedSearchResult("s_1", chunks=chunks, rules=BaseRules(has_records=True))
    stage = RoomStage(backend=FakeSealedBackend(found), model=FakeSecondary((b"good",)))
    assert await stage.ask(query="teacher", last_message="What keeps the teacher?") is None
    (outcome,) = stage.backend.outcomes
    assert (outcome.reason, stage.model.prompts) == (PolicyRefusal.KNOWLEDGE_BASE_QUESTION, [])
