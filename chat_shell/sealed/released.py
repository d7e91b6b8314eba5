"""What may leave the room: a summary that the gate let through."""

import json
from typing import Any, Literal, Self, final

from pydantic import ValidationError

from chat_shell.sealed.codes import AnswerReason, Confidence
from shared.models.values import Value


@final
class Released(Value):
    """A summary that passed every check. The gate alone builds one; `read_back` is for its own record."""

    decision: Literal["answer"] = "answer"
    reason: AnswerReason
    summary: str
    observations: tuple[str, ...]
    risks: tuple[str, ...]
    recommended_actions: tuple[str, ...]
    confidence: Confidence

    def as_object(self) -> dict[str, Any]:
        """Return it as a JSON object, in the order of the secondary model's answer."""
        return self.model_dump(mode="json")

    def as_json(self) -> str:
        """Return it as JSON text, not escaped to ASCII."""
        return json.dumps(self.as_object(), ensure_ascii=False)

    @classmethod
    def read_back(cls, stored: object) -> Self | None:
        """Read what the backend has kept of an earlier release; anything else is None."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return None
