"""The gate's verdicts on a reply, what it releases, and the interface of the gate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, Self, final

from pydantic import ValidationError

from chat_shell.sealed.codes import AnswerReason, Confidence, GateCode, PolicyRefusal
from chat_shell.sealed.protected import ProtectedChunk
from shared.disclosure.frame import BaseRules
from shared.disclosure.languages import Language
from shared.models.safe_summary import UNLESS_EMPTY, CodedFinding
from shared.models.values import JsonObject, Value


@final
class Released(Value):
    """A summary that passed every check. Only the gate builds one; `read_back` reads one that the backend kept.

    With `findings` the texts are the sentences for these codes.
    """

    decision: Literal["answer"] = "answer"
    reason: AnswerReason
    summary: str
    observations: tuple[str, ...]
    risks: tuple[str, ...]
    recommended_actions: tuple[str, ...]
    confidence: Confidence
    findings: Annotated[tuple[CodedFinding, ...], UNLESS_EMPTY] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all that it says."""
        return (self.summary, *self.observations, *self.risks, *self.recommended_actions)

    def as_object(self) -> JsonObject:
        """Return it as a JSON object, with its keys in the order of the secondary model's answer."""
        return self.model_dump(mode="json")

    def as_json(self) -> str:
        """Return it as JSON text, not escaped to ASCII."""
        return json.dumps(self.as_object(), ensure_ascii=False)

    @classmethod
    def read_back(cls, stored: object) -> Self | None:
        """Read an earlier release that the backend has kept; return None for anything else."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class Refused:
    """The secondary model refused, in the agreed form."""

    reason: PolicyRefusal


@dataclass(frozen=True, slots=True)
class Blocked:
    """A reply that must not be released: the checks that it failed, and the number of canaries in it.

    `phrases` are those of its words and phrases that may not leave, for the secondary model, which wrote them.
    """

    codes: tuple[GateCode, ...]
    canary_hits: int = 0
    phrases: tuple[str, ...] = field(default=(), repr=False)


Verdict = Released | Refused | Blocked

Judge = Callable[[bytes], Verdict]
"""Judges a reply of the secondary model."""


class Gate(Protocol):
    """Decides what of the secondary model's replies leaves the room."""

    @property
    def version(self) -> str:
        """Return the version of its rules; what another one released is not used again."""
        ...

    def prepare(
        self,
        chunks: Sequence[ProtectedChunk],
        user_words: str,
        canaries: Sequence[str],
        siblings: Sequence[ProtectedChunk],
        language: Language | None,
        rules: BaseRules,
    ) -> Judge:
        """Read the chunks of one search, and return what judges each of its replies."""
        ...
