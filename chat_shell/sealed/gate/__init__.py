"""The gate: plain code that trusts no model and decides what leaves the sealed room."""

from chat_shell.sealed.gate.case import GateCase, prepare
from chat_shell.sealed.gate.judging import CodeGate, judge
from chat_shell.sealed.gate.version import GATE_VERSION

__all__ = ["GATE_VERSION", "CodeGate", "GateCase", "judge", "prepare"]
