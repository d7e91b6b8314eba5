"""The only text that may leave the sealed room: a summary that passed the gate."""

import json
from typing import Literal, Self, final

from pydantic import ValidationError

from chat_shell.sealed.codes import AnswerReason, Confidence
from shared.models.values import JsonObject, Value


@final
class Released(Value):
    """A summary that passed every check. Only the gate builds one; `read_back` reads one that the backend kept."""

    decision: Literal["answer"] = "answer"
    reason: AnswerReason
    summary: str
    observations: tuple[str, ...]
    risks: tuple[str, ...]
    recommended_actions: tuple[str, ...]
    confidence: Confidence

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
