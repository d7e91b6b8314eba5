"""Resolving the items of an input that name stored items of the caller."""

from collections.abc import Mapping

from backend.conversations.domain.item_references import find_referenced_ids, resolve_cooperatively
from backend.conversations.domain.responses import OwnedItem
from backend.conversations.domain.withheld import empty_item
from backend.conversations.ports.conversations import ConversationStore
from backend.foundation.services.steps import run_cooperatively
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import Label, Labels, may_read, name_turn
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.turn_draft import AskedTurn
from shared.errors import InvalidRequest

MAX_CONVERSATIONS = 100
"""From how many conversations the items of one input may come: the labels of each are read."""


class ReferencedItems:
    """Puts stored items in the places of those that name them; a withheld one comes without its text."""

    def __init__(self, conversations: ConversationStore, context: ContextSources) -> None:
        self._conversations = conversations
        self._context = context

    async def resolve(self, caller: Caller, request: TurnRequest) -> AskedTurn:
        """Return the request with the items themselves, and their labels.

        Raises:
            InvalidRequest: there is no such item of this caller; `param` names the reference.
        """
        ids = () if isinstance(request.input, str) else find_referenced_ids(request.input)
        if isinstance(request.input, str) or not ids:
            return AskedTurn(caller, request)
        found = await self._conversations.find_owned_items(caller.tenant, caller.user_id, ids)
        labels = await self._labels(found)
        access = await self._context.access(caller, frozenset[Label]().union(*labels.values()))
        bodies = {
            each.item.id: each.item.body
            if may_read(access, labels.get(each.item.id, ()))
            else empty_item(each.item.body, with_users=each.is_shared)
            for each in found
        }
        items = await run_cooperatively(resolve_cooperatively(request.input, bodies))
        return AskedTurn(caller, request.model_copy(update={"input": items}), labels)

    async def _labels(self, found: tuple[OwnedItem, ...]) -> Mapping[str, Labels]:
        """Return the labels of the items' turns, by the ids of the items."""
        places = {each.conversation_id for each in found}
        if len(places) > MAX_CONVERSATIONS:
            message = f"The items come from {len(places)} conversations; use items of at most {MAX_CONVERSATIONS}."
            raise InvalidRequest(message, param="input")
        turns = {place: await self._conversations.labels(place) for place in sorted(places)}
        return {each.item.id: _labels_of(each, turns[each.conversation_id]) for each in found}


def _labels_of(found: OwnedItem, turns: Mapping[str, Labels]) -> Labels:
    """Return the labels of an item that is taken out of its conversation."""
    turn_id = found.item.response_id or ""
    return name_turn(turn_id, turns.get(turn_id, ()))
