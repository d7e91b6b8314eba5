"""A released summary is written one way, and read back strictly."""

import json

import pytest

from chat_shell.sealed.codes import AnswerReason, Confidence, GateCode, name_gate_block
from chat_shell.sealed.verdicts import Released


def released() -> Released:
    return Released(
        reason=AnswerReason.GAP,
        summary="Die Vorräte 一致",
        observations=("Checks are late.",),
        risks=(),
        recommended_actions=("Agree on an owner.",),
        confidence=Confidence.MEDIUM,
    )


def test_its_json_is_the_object_of_the_prompt():
    text = released().as_json()
    assert "一致" in text
    assert json.loads(text) == {
        "decision": "answer",
        "reason": "gap",
        "summary": "Die Vorräte 一致",
        "observations": ["Checks are late."],
        "risks": [],
        "recommended_actions": ["Agree on an owner."],
        "confidence": "medium",
    }


def test_what_was_stored_is_read_back():
    assert Released.read_back(json.loads(released().as_json())) == released()


@pytest.mark.parametrize(
    "changed",
    [{"decision": "refuse"}, {"reason": "verbatim"}, {"confidence": "sure"}, {"more": ""}, {"risks": "x"}],
)
def test_what_is_no_release_is_not_read_back(changed: dict[str, object]):
    assert Released.read_back({**released().as_object(), **changed}) is None


def test_a_blocked_gate_is_named():
    assert name_gate_block(GateCode.FIGURES) == "gate_blocked_figures"
