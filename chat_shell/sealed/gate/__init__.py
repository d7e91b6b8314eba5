"""The gate: plain code that trusts no model and decides what leaves the room."""

from chat_shell.sealed.gate.case import GateCase, prepare
from chat_shell.sealed.gate.judging import GATE_VERSION, judge

__all__ = ["GATE_VERSION", "GateCase", "judge", "prepare"]
