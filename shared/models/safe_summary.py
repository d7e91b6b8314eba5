"""The closed lists of reasons for which a restricted search is answered or refused, and the form of a released summary.

Both services use them: as labels of metrics, as codes in the audit log, and as reasons in messages between services.
"""

from enum import StrEnum
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from shared.models.values import Value

MAX_SUMMARY_CHARACTERS = 400
MAX_LIST_ITEMS = 4
MAX_LIST_ITEM_CHARACTERS = 140
MAX_FINDINGS = 4
MAX_AREAS = 24
MAX_AREA_CHARACTERS = 48


class RestrictedGrade(StrEnum):
    """What may leave a base for its restricted members: coded findings alone, or prose under the gate's rules."""

    OPEN = "open"
    STRICT = "strict"


class BaseContent(StrEnum):
    """What a base holds: documents, or records, each of which is about one subject."""

    DOCUMENTS = "documents"
    RECORDS = "records"


LEAST_SUPPORT, MAX_SUPPORT = 3, 1000
"""Documents in which a word has to stand to say nothing of any of them; an owner may ask for more."""


class Decision(StrEnum):
    """The outcome of a restricted search."""

    ANSWER = "answer"
    REFUSE = "refuse"


class AnswerReason(StrEnum):
    """The kind of a released summary."""

    DIAGNOSIS = "diagnosis"
    GAP = "gap"
    RISK = "risk"
    PRIORITY = "priority"
    ADVICE = "advice"


class Confidence(StrEnum):
    """How well the evidence supports a summary, as the model that wrote it says."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class PolicyRefusal(StrEnum):
    """Why a query is refused: it asks for information that restricted access does not give."""

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
    """What failed, so that a search was refused; a summary that the gate blocked twice has a `GateBlock` instead."""

    MODEL_UNAVAILABLE = "model_unavailable"
    TIMEOUT = "timeout"
    INVALID_OUTPUT = "invalid_output"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    BUDGET_CONVERSATION = "budget_conversation"
    BUDGET_DAY = "budget_day"
    BUDGET_MONTH = "budget_month"
    BUDGET_CHUNKS = "budget_chunks"
    BUDGET_FACTS = "budget_facts"
    PAUSED = "paused"
    CIRCUIT_OPEN = "circuit_open"
    ACCESS_CHANGED = "access_changed"
    BASE_CHANGED = "base_changed"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    BAD_TICKET = "bad_ticket"


class GateCode(StrEnum):
    """The checks of the gate, in the order in which an error lists them."""

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
    LANGUAGE = "language"
    CONTAINMENT = "containment"


class GateBlock(StrEnum):
    """The check that a summary still failed after it had been rewritten once."""

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
    LANGUAGE = "gate_blocked_language"
    CONTAINMENT = "gate_blocked_containment"


Reason = AnswerReason | PolicyRefusal | Failure | GateBlock
"""Why a search was answered or refused; the values of all four enumerations differ."""


UNLESS_EMPTY = Field(exclude_if=not_)
"""A field that is not written where it is empty, so that a release that does not know it reads the rest."""


class SummaryVersions(Value):
    """The versions on which a summary depends; a stored summary is used only while none of them has changed.

    `meaning_version` is that of what weighs answers by their meaning, which the backend alone knows.
    """

    policy_version: Annotated[str, Field(min_length=1, max_length=64)]
    gate_version: Annotated[str, Field(min_length=1, max_length=64)]
    prompt_version: Annotated[str, Field(min_length=1, max_length=64)]
    model: Annotated[str, Field(min_length=1, max_length=256)]
    meaning_version: Annotated[str, UNLESS_EMPTY] = ""


_Items = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_LIST_ITEM_CHARACTERS)], ...], Field(max_length=MAX_LIST_ITEMS)
]


Area = Annotated[str, Field(min_length=1, max_length=MAX_AREA_CHARACTERS)]
_Code = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,47}$")]


class CodedFinding(Value):
    """What was found in an area, as codes of closed lists: a weakness, a strength, an effect or a relation.

    A weakness has its severity and an action, a relation the `other` area.
    """

    area: Area
    weakness: Annotated[_Code | None, UNLESS_EMPTY] = None
    severity: Annotated[_Code | None, UNLESS_EMPTY] = None
    action: Annotated[_Code | None, UNLESS_EMPTY] = None
    strength: Annotated[_Code | None, UNLESS_EMPTY] = None
    effect: Annotated[_Code | None, UNLESS_EMPTY] = None
    relation: Annotated[_Code | None, UNLESS_EMPTY] = None
    other: Annotated[Area | None, UNLESS_EMPTY] = None


class ReleasedSummary(Value):
    """A summary that the gate released, as it is sent and stored; validating one checks its form only.

    Of a base with the grade `strict` it has `findings`, and its texts are the sentences for these.
    """

    decision: Literal["answer"]
    reason: AnswerReason
    summary: Annotated[str, Field(min_length=1, max_length=MAX_SUMMARY_CHARACTERS)]
    observations: _Items
    risks: _Items
    recommended_actions: _Items
    confidence: Confidence
    findings: Annotated[tuple[CodedFinding, ...], Field(max_length=MAX_FINDINGS), UNLESS_EMPTY] = ()


def name_gate_block(code: GateCode) -> str:
    """Return the reason of a refusal after this check of the gate failed twice."""
    return GateBlock[code.name].value
