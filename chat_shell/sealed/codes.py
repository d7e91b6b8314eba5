"""Why the room answered or did not: closed lists, and all that audit and logs learn of a refusal."""

from enum import StrEnum


class AnswerReason(StrEnum):
    """What a released summary is."""

    DIAGNOSIS = "diagnosis"
    GAP = "gap"
    RISK = "risk"
    PRIORITY = "priority"
    ADVICE = "advice"


class Confidence(StrEnum):
    """How sure a summary is of itself."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class PolicyRefusal(StrEnum):
    """Asked for what restricted access does not give."""

    KNOWLEDGE_BASE_QUESTION = "knowledge_base_question"
    EXACT_VALUE = "exact_value"
    VERBATIM = "verbatim"
    DEFINITION = "definition"
    STRUCTURE = "structure"
    ENUMERATION = "enumeration"
    POLICY_PROBE = "policy_probe"
    ENCODING = "encoding"
    INJECTION_SUSPECTED = "injection_suspected"
    OUT_OF_SCOPE = "out_of_scope"


class Failure(StrEnum):
    """What failed, closed; a gate that blocked twice is named by `gate_blocked`."""

    MODEL_UNAVAILABLE = "model_unavailable"
    TIMEOUT = "timeout"
    INVALID_OUTPUT = "invalid_output"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    BUDGET_CONVERSATION = "budget_conversation"
    BUDGET_DAY = "budget_day"
    BUDGET_MONTH = "budget_month"
    BUDGET_CHUNKS = "budget_chunks"
    PAUSED = "paused"
    CIRCUIT_OPEN = "circuit_open"
    ACCESS_CHANGED = "access_changed"
    BASE_CHANGED = "base_changed"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    BAD_TICKET = "bad_ticket"


class GateCode(StrEnum):
    """The checks of the gate, in the order in which they are named."""

    SCHEMA = "schema"
    UNICODE = "unicode"
    FIGURES = "figures"
    MARKUP = "markup"
    IDENTIFIERS = "identifiers"
    OVERLAP = "overlap"
    DECODERS = "decoders"
    STRUCTURE = "structure"
    INSTRUCTION = "instruction"
    CANARY = "canary"


def gate_blocked(code: GateCode) -> str:
    """Name the refusal of a gate that blocked twice."""
    return f"gate_blocked_{code}"
