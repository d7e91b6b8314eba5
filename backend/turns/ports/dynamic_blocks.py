"""Request-scoped text that a deployment adds to a turn, behind the knowledge metadata."""

from datetime import datetime
from typing import Protocol

from backend.identity.domain import Caller
from shared.models.execution import DynamicBlock
from shared.models.values import Value


class TurnFacts(Value):
    """What a block may depend on; `turn_id` is the id of the response."""

    caller: Caller
    turn_id: str
    conversation_id: str
    metadata: dict[str, str]
    knowledge_base_ids: tuple[str, ...]
    sent_at: datetime
    time_zone: str


class DynamicBlockSource(Protocol):
    """Makes one named block; asked once a turn, before anything is stored or sent."""

    @property
    def accepts_restricted(self) -> bool:
        """Whether it is asked in restricted turns too; a source that does not say so is not.

        Its text then holds nothing that restricted members may not have.
        """
        ...

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        """Return this turn's block, or None for none.

        Whatever it raises fails the turn as `Unavailable` before the first model call.
        """
        ...
