"""Show the prompts of a turn's model calls to the members of its conversation."""

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.model_calls import prompt_parts, shown_prompt
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.identity.domain import Caller
from shared.errors import NotFound
from shared.models.values import JsonObject


class ReadPrompts:
    """Rebuilds the prompts of a turn from the log; for a running turn, those of its calls so far."""

    def __init__(
        self, turns: TurnStore, conversations: ConversationStore, access: ConversationAccess, withheld: WithheldText
    ) -> None:
        self._access = access
        self._turns = turns
        self._conversations = conversations
        self._withheld = withheld

    async def __call__(self, caller: Caller, response_id: str) -> list[JsonObject]:
        """Return the prompts of a turn in order; texts that the caller may no longer read are replaced by notices.

        Raises:
            NotFound: there is no such response for the caller, or its conversation was deleted.
        """
        response = await self._access.response(caller, response_id, ConversationRole.READER)
        conversation_id = response.conversation_id
        if await self._conversations.find(conversation_id) is None:
            raise NotFound("The conversation of this response was deleted, and its prompts with it.")
        calls = await self._turns.model_calls(response_id)
        if not calls:
            return []
        log = await self._conversations.log(conversation_id, max(call.log_end for call in calls))
        withheld = await self._withheld.of(caller, conversation_id)
        return [shown_prompt(call, prompt_parts(call, log), response_id, withheld) for call in calls]
