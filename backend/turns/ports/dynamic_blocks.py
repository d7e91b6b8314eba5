"""Request-scoped text that a deployment adds to a turn, behind the knowledge metadata."""

from datetime import datetime
from typing import Protocol

from backend.identity.domain import Caller
from shared.models.execution import DynamicBlock
from shared.models.values import Value


class TurnFacts(Value):
    """The facts of a turn that a block may depend on; `turn_id` is the id of the response."""

    caller: Caller
    turn_id: str
    conversation_id: str
    metadata: dict[str, str]
    knowledge_base_ids: tuple[str, ...]
    sent_at: datetime
    time_zone: str


class DynamicBlockSource(Protocol):
    """Builds one named block; called once a turn, before anything is stored or sent."""

    @property
    def accepts_restricted(self) -> bool:
        """Whether the source is called in restricted turns, too; a source without this attribute is not.

        Its text must then hold nothing that restricted members may not read.
        """
        ...

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        """Return this turn's block, or None if it has none.

        Whatever it raises fails the turn as `Unavailable` before the first model call.
        """
        ...
