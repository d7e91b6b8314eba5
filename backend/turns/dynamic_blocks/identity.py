"""An example of a dynamic block: it tells the model for which user it answers.

Not enabled unless an entry point names it (entry_points.py says how).
"""

from backend.turns.ports.dynamic_blocks import TurnFacts
from shared.models.execution import DynamicBlock


class IdentityBlock:
    """Implements `backend.turns.ports.dynamic_blocks.DynamicBlockSource`."""

    accepts_restricted = True

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        """Name the user and the tenant."""
        caller = facts.caller
        text = f"The user of this conversation is {caller.user_id} of the organisation {caller.tenant}."
        return DynamicBlock(name="identity", text=text)
