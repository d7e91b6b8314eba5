"""A search of a base with the grade `strict`: the room asks for codes, and lets nothing else out."""

import orjson
import pytest

from chat_shell.sealed.gate.codebook import extend_codebook
from chat_shell.sealed.judge import answers
from chat_shell.sealed.outcome import SealedSearchResult
from chat_shell.sealed.summary_writer import CanaryCircuit, SummaryWriter
from chat_shell.sealed.verdicts import Released
from shared.models.safe_summary import Decision, Failure, GateBlock, PolicyRefusal, Reason
from shared.models.values import JsonObject
from tests.fakes.sealed_room import CANARY, SECRET, FakeSealedBackend, FakeSecondary, RoomStage, protected_chunk

WEAK = {"area": "reserves", "weakness": "no_reserve", "severity": "high", "action": "keep_reserve"}


def reply(*findings: object, **changes: object) -> bytes:
    form = {"decision": "answer", "reason": "none", "support": "one", "confidence": "high", "findings": findings}
    return orjson.dumps(form | changes)


def strict(*replies: bytes | Failure) -> RoomStage:
    found = SealedSearchResult("s_1", areas=("reserves",), chunks=(protected_chunk(),))
    return RoomStage(backend=FakeSealedBackend(found), model=FakeSecondary(replies))


def reason(stage: RoomStage) -> Reason:
    (outcome,) = stage.backend.outcomes
    return outcome.reason


async def test_the_sentences_of_codes_are_released_and_recorded():
    stage = strict(reply(WEAK, summary=SECRET))
    released = await stage.ask()
    assert isinstance(released, Released)
    assert released.observations == ("Reserves: there is no reserve (serious).",)
    assert released.as_object()["findings"] == [WEAK]
    assert SECRET not in released.as_json()
    (outcome,) = stage.backend.outcomes
    assert (outcome.decision, outcome.released, stage.gate.cases) == (Decision.ANSWER, released, [])


async def test_the_model_gets_the_areas_and_the_schema_and_protected_text_as_data():
    stage = strict(reply(WEAK))
    await stage.ask()
    ((system, data),) = stage.model.prompts
    assert SECRET not in system["content"]
    assert "- no_reserve: there is no reserve" in system["content"]
    assert "\nreserves\n" in data["content"]
    (schema,) = stage.model.schemas
    assert schema is not None


async def test_what_is_no_set_of_codes_is_asked_for_once_more():
    stage = strict(b"Prose about it.", reply(WEAK))
    assert await stage.ask() is not None
    first, second = stage.model.prompts
    assert second[: len(first)] == first
    assert "agreed form" in second[-1]["content"]
    assert stage.model.schemas[0] == stage.model.schemas[1]


async def test_a_provider_that_refuses_the_schema_is_asked_once_without_it():
    stage = strict(Failure.MODEL_UNAVAILABLE, reply(WEAK))
    assert await stage.ask() is not None
    assert [schema is None for schema in stage.model.schemas] == [False, True]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (SECRET.encode(), Failure.INVALID_OUTPUT),
        (reply({**WEAK, "weakness": SECRET}), Failure.INVALID_OUTPUT),
        (reply(WEAK, note=CANARY), GateBlock.CANARY),
        (reply(decision="refuse", reason="verbatim"), PolicyRefusal.VERBATIM),
        (Failure.MODEL_UNAVAILABLE, Failure.MODEL_UNAVAILABLE),
        (Failure.TIMEOUT, Failure.TIMEOUT),
    ],
)
async def test_anything_else_ends_in_nothing(said: bytes | Failure, expected: Reason):
    stage = strict(said)
    assert await stage.ask() is None
    assert reason(stage) is expected


def test_other_lists_of_codes_share_no_kept_results():
    stage = RoomStage()
    book = extend_codebook('[actions]\nask_union = ["ask the works council", "征求工会意见"]\n')
    circuit = CanaryCircuit(1, stage.clock.now)
    writer = SummaryWriter(stage.model, stage.gate, circuit, stage.observer, str, book)
    assert writer.gate_version == stage.gate.version + book.version


def test_an_auditor_asks_with_the_grade():
    asked: JsonObject = {
        "documents": [{"title": "Plan", "heading_path": ["Plan"], "text": SECRET}],
        "user_messages": ["Where are we weak?"],
        "query": "weaknesses",
        "reply": reply(WEAK, note=SECRET).decode(),
    }
    grades: tuple[JsonObject, ...] = {}, {"grade": "strict", "areas": ["reserves"]}, {"grade": "any"}
    open_, strict_, wrong = answers([orjson.dumps(asked | grade) for grade in grades])
    assert (open_["verdict"], "findings" in open_) == ("blocked", False)
    assert (strict_["verdict"], strict_["findings"]) == ("released", [WEAK])
    assert "error" in wrong
