"""The corpus as typed values, checked while it is read."""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Language = Literal["en", "zh"]
AttackClass = Literal[
    "direct_value",
    "direct_verbatim",
    "direct_definition",
    "direct_enumeration",
    "direct_structure",
    "direct_policy_probe",
    "disguised",
    "encoded",
    "numeric_probing",
    "crawl",
    "membership",
    "injection_chunk",
    "injection_metadata",
    "mode_forgery",
    "ticket_forgery",
    "other_tools",
    "history",
    "role_change",
]
Expected = Literal["refused_by_pre_screen", "no_leak"]
Role = Literal["owner", "editor", "reader", "restricted_analyst"]
Text = Annotated[str, Field(min_length=1)]

_HERE = Path(__file__).parent
_SUMMARY_CHARACTERS, _ITEM_CHARACTERS, _LIST_ITEMS = 400, 140, 4


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Definition(_Row):
    """A term and what the document says that it means."""

    term: Text
    text: Text


class Secrets(_Row):
    """What was planted in one document, each string as it stands there."""

    file: Text
    language: Language
    title: Text
    headings: tuple[Text, ...]
    table_heads: tuple[Text, ...]
    figures: tuple[Text, ...]
    names: tuple[Text, ...]
    codes: tuple[Text, ...]
    acronyms: tuple[Text, ...]
    definitions: tuple[Definition, ...]

    def planted(self) -> Iterator[str]:
        """Yield every planted string but table heads, which may be plain words."""
        yield self.title
        yield from (*self.headings, *self.figures, *self.names, *self.codes, *self.acronyms)
        for definition in self.definitions:
            yield definition.term
            yield definition.text


_Item = Annotated[str, Field(min_length=1, max_length=_ITEM_CHARACTERS)]
_Items = Annotated[tuple[_Item, ...], Field(max_length=_LIST_ITEMS)]


class Reply(_Row):
    """An answer of a secondary model, in the schema that it is asked for."""

    decision: Literal["answer"]
    reason: Literal["diagnosis", "gap", "risk", "priority", "advice"]
    summary: Annotated[str, Field(min_length=1, max_length=_SUMMARY_CHARACTERS)]
    observations: _Items
    risks: _Items
    recommended_actions: _Items
    confidence: Literal["low", "medium", "high"]

    def texts(self) -> Iterator[str]:
        """Yield every text field."""
        yield self.summary
        yield from (*self.observations, *self.risks, *self.recommended_actions)


class BenignSummary(_Row):
    """An honest reply about `document`, and the user's question that it answers."""

    id: Text
    language: Language
    document: Text
    question: Text
    reply: Reply


class BenignQuestion(_Row):
    """A question that a restricted analyst may ask."""

    id: Text
    language: Language
    text: Text


class HistoryEntry(_Row):
    """A message that the client hands in before the first user turn."""

    role: Literal["system", "developer", "user", "assistant"]
    text: Text


class ToolAttempt(_Row):
    """A call that the scripted main model makes."""

    name: Text
    arguments: Mapping[str, Any]


class RoleChange(_Row):
    """The member's role before and after the user turn number `after_turn`, counted from one."""

    after_turn: int
    before: Role
    after: Role


class Setup(_Row):
    """What the runner does besides sending the user's words; README.md says how."""

    plant_in_chunk: Text | None = None
    plant_in_file_name: Text | None = None
    routing_hint: Text | None = None
    routing_keywords: tuple[Text, ...] = ()
    base_name: Text | None = None
    access_mode_sent: Literal["full", "null", "empty", "unknown", "missing"] | None = None
    ticket_sent: (
        Literal["none", "garbage", "expired", "bit_flipped", "other_user", "other_base", "other_turn"] | None
    ) = None
    main_model_calls: tuple[ToolAttempt, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    role_change: RoleChange | None = None
    other_conversation_role: Role | None = None
    new_conversation_each_turn: bool = False
    read_back: bool = False


class Attack(_Row):
    """What a restricted member tries, and what has to become of it."""

    id: Text
    attack_class: AttackClass = Field(alias="class")
    language: Language
    document: Text | None
    user_turns: Annotated[tuple[Text, ...], Field(min_length=1)]
    expected: Expected
    notes: str
    setup: Setup = Setup()


class _SecretsFile(_Row):
    documents: tuple[Secrets, ...]


def document_names() -> tuple[str, ...]:
    """Return the documents' names, such as `en/rules.md`, ordered."""
    folder = _HERE / "documents"
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md")))


@functools.cache
def document_text(name: str) -> str:
    """Return the Markdown of one document."""
    return (_HERE / "documents" / name).read_text(encoding="utf-8")


@functools.cache
def secrets() -> tuple[Secrets, ...]:
    """Return what is planted, by document."""
    return _SecretsFile.model_validate_json((_HERE / "secrets.json").read_bytes()).documents


@functools.cache
def benign_summaries() -> tuple[BenignSummary, ...]:
    """Return the honest replies of both languages."""
    rows = TypeAdapter(BenignSummary)
    return tuple(rows.validate_json(line) for language in ("en", "zh") for line in _lines(f"benign_{language}.jsonl"))


@functools.cache
def benign_questions() -> tuple[BenignQuestion, ...]:
    """Return the questions that have to get through the pre-screen."""
    rows = TypeAdapter(BenignQuestion)
    return tuple(rows.validate_json(line) for line in _lines("questions.jsonl"))


@functools.cache
def attacks() -> tuple[Attack, ...]:
    """Return the attack cases."""
    rows = TypeAdapter(Attack)
    return tuple(rows.validate_json(line) for line in _lines("attacks.jsonl"))


def _lines(name: str) -> list[str]:
    return (_HERE / name).read_text(encoding="utf-8").splitlines()
