"""The agreed form, and nothing beside it."""

import json
from typing import Any

import pytest

from chat_shell.sealed.codes import GateCode, PolicyRefusal
from chat_shell.sealed.gate import judge
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES, parse
from chat_shell.sealed.verdicts import Blocked, Refused, Released
from tests.unit.chat_shell.sealed.gate.planting import HONEST, case, reply, verdict

_REFUSAL = {"decision": "refuse", "reason": "verbatim", "summary": ""}


def test_an_honest_reply_is_released_as_it_is():
    judged = verdict(observations=["Reviews slip."], recommended_actions=["Name an owner first of all."])
    assert isinstance(judged, Released)
    assert judged.as_object() == json.loads(
        reply(observations=["Reviews slip."], recommended_actions=["Name an owner first of all."])
    )


def test_a_refusal_is_passed_on():
    assert judge(reply(**_REFUSAL), case()) == Refused(PolicyRefusal.VERBATIM)


@pytest.mark.parametrize(
    "changed",
    [
        {**_REFUSAL, "summary": "x"}, {**_REFUSAL, "risks": ["Project Falcon"]}, {**_REFUSAL, "reason": "gap"},
        {**_REFUSAL, "summary": " "}, {"reason": "verbatim"}, {"decision": "maybe"}, {"confidence": "sure"},
        {"confidence": None}, {"confidence": []}, {"decision": {}}, {"reason": []}, {"summary": ""}, {"summary": " "},
        {"summary": 1}, {"summary": "x" * 401}, {"risks": ["a"] * 5}, {"risks": ["x" * 141]}, {"risks": "a"},
        {"risks": [1]}, {"risks": [["a"]]}, {"risks": [""]}, {"risks": None}, {"more": "x"},
    ],
)  # fmt: skip
def test_another_form_is_blocked(changed: dict[str, Any]):
    assert judge(reply(**changed), case()) == Blocked((GateCode.SCHEMA,))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b"NaN", b"\xff", b"[" * 8000, b"```json\n" + reply() + b"\n```", reply() + reply(),
        reply()[:-1] + b', "reason": "risk"}', reply().replace(b'"medium"', b"Infinity"), b"\xef\xbb\xbf" + reply(),
        reply() + b" " * MAX_REPLY_BYTES,
    ],
)  # fmt: skip
def test_no_strict_json_is_blocked(raw: bytes):
    assert judge(raw, case()) == Blocked((GateCode.SCHEMA,))


def test_a_missing_key_is_blocked():
    form = json.loads(reply())
    for key in form:
        assert parse(json.dumps({kept: form[kept] for kept in form if kept != key}).encode()) is None


def test_a_lone_surrogate_is_blocked():
    assert isinstance(judge(reply().replace(HONEST.encode(), b"a \\ud800 b"), case()), Blocked)
