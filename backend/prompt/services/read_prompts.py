"""Show the prompts of a turn's model calls to the members of its conversation."""

from collections.abc import Iterable
from dataclasses import replace

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.model_calls import PromptPart, prompt_parts, show_prompt
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.responses import lane_ids
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.identity.domain import Caller
from backend.prompt.domain.layouts import list_layout_costs
from backend.prompt.ports.agent_use import AgentUse
from shared.errors import NotFound
from shared.models.values import JsonObject


class ReadPrompts:
    """Rebuilds the prompts of a turn from the log; for a running turn, those of its calls so far."""

    def __init__(
        self,
        turns: TurnStore,
        conversations: ConversationStore,
        access: ConversationAccess,
        withheld: WithheldText,
        agents: AgentUse,
    ) -> None:
        self._access = access
        self._turns = turns
        self._conversations = conversations
        self._withheld = withheld
        self._agents = agents

    async def __call__(self, caller: Caller, response_id: str, *, with_layouts: bool = False) -> list[JsonObject]:
        """Return the prompts of a turn in order, of a joined response those of its lanes.

        On request each has what it would have cost under other layouts.
        Texts that the caller may not read, also those of agents that they may not use, are replaced by notices.

        Raises:
            NotFound: there is no such response for the caller, or its conversation was deleted.
        """
        response = await self._access.response(caller, response_id, ConversationRole.READER)
        conversation_id = response.conversation_id
        if await self._conversations.find(conversation_id) is None:
            raise NotFound("The conversation of this response was deleted, and its prompts with it.")
        lanes = lane_ids(response.body)
        if lanes:
            return [call for lane_id in lanes for call in await self._of_lane(caller, lane_id, with_layouts)]
        calls = await self._turns.model_calls(response_id)
        if not calls:
            return []
        log = await self._conversations.log(conversation_id, max(call.log_end for call in calls))
        agent = response.preset_use.agent if response.preset_use is not None else None
        prompts = [(call, prompt_parts(call, log, agent)) for call in calls]
        lost = await self._not_usable(caller, (part for _, parts in prompts for part in parts))
        withheld = replace(await self._withheld.of(caller, conversation_id), agents=lost)
        shown = [(call, parts, show_prompt(call, parts, response_id, withheld)) for call, parts in prompts]
        if not with_layouts:
            return [prompt for _, _, prompt in shown]
        return [
            {**prompt, "layouts": list_layout_costs(call, parts, prompt, response_id)} for call, parts, prompt in shown
        ]

    async def _of_lane(self, caller: Caller, lane_id: str, with_layouts: bool) -> list[JsonObject]:
        """Return the prompts of a lane; none where its conversation, which may be its asker's alone, is not shared."""
        try:
            calls = await self(caller, lane_id, with_layouts=with_layouts)
        except NotFound:
            return []
        return [{**call, "response_id": lane_id} for call in calls]

    async def _not_usable(self, caller: Caller, parts: Iterable[PromptPart]) -> frozenset[AgentRef]:
        """Return the agents of these parts that the caller may not use today."""
        named = frozenset[AgentRef]().union(*(part.agents for part in parts))
        return named - await self._agents.usable(caller, named) if named else named
