"""What is found in a release that is no code, and what a hostile model says in codes."""

import random
from typing import Any

import orjson
import pytest

from tests.leaks.coded import code, uncoded
from tests.leaks.hostile.replies import HttpReply, http_reply, strict, summary

ASKED = ("Where are our reserves weak?",)
FINDING = {"area": "reserves", "weakness": "no_reserve", "severity": "high", "action": "keep_reserve"}


def released(**changes: Any) -> str:
    said = {
        "summary": "The findings rest on a single document; confidence is high.",
        "observations": ["Reserves: there is no reserve (serious)."],
        "risks": [],
        "recommended_actions": ["Reserves: keep a reserve."],
        "findings": [FINDING],
    }
    return orjson.dumps(said | changes).decode() + "\nA note."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"observations": ["Reserves: the vault is empty (serious)."]}, ["the", "vault", "is", "empty"]),
        ({"findings": [{**FINDING, "area": "vault"}]}, ["vault", "reserves", "reserves"]),
        ({"summary": "结论依据单个文件，把握较高。金库空了"}, ["金库空了"]),
    ],
)
def test_what_is_no_code_is_found(changes: dict[str, Any], expected: list[str]):
    assert [*uncoded(released(**changes), ASKED)] == expected


def test_a_hostile_model_puts_its_payload_beside_allowed_codes():
    said = code(strict(summary("Velvet anchor")), random.Random(1))
    assert isinstance(said, HttpReply)
    content = orjson.loads(orjson.loads(said.raw.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"])
    assert content["decision"] == "answer"
    assert "Velvet anchor" in [finding.get("note") for finding in content["findings"]]
    assert [finding for finding in content["findings"] if "Velvet anchor" not in finding.values()] == []


@pytest.mark.parametrize("body", [b"", b"{}", b'{"choices": [{"message": {"content": "prose"}}]}'])
def test_what_is_no_answer_stays_as_it_is(body: bytes):
    assert code(http_reply(body), random.Random(1)) == http_reply(body)
