"""`python -m tests.leaks.ungated`: chat_shell with a gate that lets everything out, to see that the leak test bites."""

import importlib

import orjson
from pydantic import ValidationError

from chat_shell.sealed.codes import AnswerReason, Confidence, GateCode
from chat_shell.sealed.gate import judging
from chat_shell.sealed.verdicts import Blocked, Released, Verdict
from tests.leaks.loud import main

LISTS = ("observations", "risks", "recommended_actions")


def let_out(reply: bytes, case: object) -> Verdict:
    """Release whatever has a summary."""
    try:
        said = orjson.loads(reply)
        observations, risks, actions = (tuple(said[name]) for name in LISTS)
        return Released(
            reason=AnswerReason.DIAGNOSIS,
            summary=said["summary"] or "-",
            observations=observations,
            risks=risks,
            recommended_actions=actions,
            confidence=Confidence.LOW,
        )
    except (ValueError, LookupError, TypeError, ValidationError):
        return Blocked((GateCode.SCHEMA,))


if __name__ == "__main__":
    judging.judge = let_out
    main(importlib.import_module("chat_shell.app"), importlib.import_module("chat_shell.settings"))
