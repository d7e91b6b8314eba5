"""Why a restricted search was answered or not: closed lists, and what a released summary may be.

Both services speak them; a label of a metric, a code in the audit and a reason on the wire is one of these.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from shared.models.values import Value

MAX_SUMMARY_CHARACTERS = 400
MAX_LIST_ITEMS = 4
MAX_LIST_ITEM_CHARACTERS = 140


class Decision(StrEnum):
    """What became of a restricted search."""

    ANSWER = "answer"
    REFUSE = "refuse"


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
    """What failed, closed; a gate that blocked twice is named by a `GateBlock`."""

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


class GateBlock(StrEnum):
    """The check at which a summary ended, its rewrite included."""

    SCHEMA = "gate_blocked_schema"
    UNICODE = "gate_blocked_unicode"
    FIGURES = "gate_blocked_figures"
    MARKUP = "gate_blocked_markup"
    IDENTIFIERS = "gate_blocked_identifiers"
    OVERLAP = "gate_blocked_overlap"
    DECODERS = "gate_blocked_decoders"
    STRUCTURE = "gate_blocked_structure"
    INSTRUCTION = "gate_blocked_instruction"
    CANARY = "gate_blocked_canary"


Reason = AnswerReason | PolicyRefusal | Failure | GateBlock
"""Why a search was answered or refused; no two of them are the same word."""


class SummaryVersions(Value):
    """What a summary depends on beside the knowledge: a change in one of them makes another summary."""

    policy_version: Annotated[str, Field(min_length=1, max_length=64)]
    gate_version: Annotated[str, Field(min_length=1, max_length=64)]
    prompt_version: Annotated[str, Field(min_length=1, max_length=64)]
    model: Annotated[str, Field(min_length=1, max_length=256)]


_Items = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_LIST_ITEM_CHARACTERS)], ...], Field(max_length=MAX_LIST_ITEMS)
]


class ReleasedSummary(Value):
    """A summary that the gate let out, as it travels and is kept; reading one vouches for its shape alone."""

    decision: Literal["answer"]
    reason: AnswerReason
    summary: Annotated[str, Field(min_length=1, max_length=MAX_SUMMARY_CHARACTERS)]
    observations: _Items
    risks: _Items
    recommended_actions: _Items
    confidence: Confidence


def gate_blocked(code: GateCode) -> str:
    """Name the refusal of a gate that blocked twice."""
    return GateBlock[code.name].value
