"""An in-memory `WaitingTurnStore`."""

from collections.abc import Sequence

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import Entered, IfRunning, WaitingTurn
from shared.errors import NotFound, TooManyRequests
from tests.fakes.store_claims import take_key
from tests.fakes.store_state import StoreState


class FakeWaitingTurnStore:
    """Keeps waiting turns in a `StoreState`, where the stores of turns and conversations look at them."""

    def __init__(self, state: StoreState) -> None:
        self._state = state

    async def add(self, waiting: WaitingTurn, most: int) -> str | None:
        """Store a turn behind those of its kind."""
        conversation = self._state.conversations.get(waiting.response.conversation_id)
        if conversation is None:
            raise NotFound("The conversation was deleted.", param="conversation")
        others = self._state.waiting_of(conversation.id)
        if len(others) >= most:
            raise TooManyRequests(f"{most} turns wait already.", param="if_running", retry_after_seconds=1)
        take_key(self._state.claims, waiting.claim)
        next_ones = [each for each in others if each.if_running.comes_next]
        later = [each for each in others if not each.if_running.comes_next]
        ordered = [*next_ones, waiting, *later] if waiting.if_running.comes_next else [*others, waiting]
        for each in others:
            del self._state.waiting[each.response.id]
        self._state.waiting |= {each.response.id: each.model_copy(update={"claim": None}) for each in ordered}
        return conversation.running_response_id

    async def startable(self, limit: int) -> tuple[str, ...]:
        """Return those that come next where no turn runs."""
        conversations = self._state.conversations.values()
        free = [one.id for one in conversations if one.running_response_id is None]
        first = [waiting[0].response.id for one in free if (waiting := self._state.waiting_of(one))]
        return tuple(first[:limit])

    async def find(self, response_id: str) -> WaitingTurn | None:
        """Return a turn that waits."""
        return self._state.waiting.get(response_id)

    async def remains(self, response_id: str) -> StoredResponse | None:
        """Return what no damage takes from a turn that waits."""
        found = self._state.waiting.get(response_id)
        return found.response.model_copy(update={"body": {}, "input_items": ()}) if found is not None else None

    async def to_be_cancelled(self) -> Sequence[str]:
        """Return the running responses that others want stopped."""
        asking = [one for one in self._state.waiting.values() if one.if_running is IfRunning.CANCEL]
        held = [self._state.conversations[one.response.conversation_id].running_response_id for one in asking]
        return sorted({response_id for response_id in held if response_id is not None})

    async def to_be_steered(self) -> Sequence[str]:
        """Return the running responses that messages wait for."""
        asking = {
            one.response.conversation_id for one in self._state.waiting.values() if one.if_running is IfRunning.STEER
        }
        held = [one for one in self._state.responses.values() if one.conversation_id in asking] if asking else []
        return [one.id for one in held if await self.find_steering(one)]

    async def find_steering(self, response: StoredResponse) -> tuple[WaitingTurn, ...]:
        """Return the messages of the same user that wait for a running turn."""
        conversation = self._state.conversations.get(response.conversation_id)
        if conversation is None or conversation.running_response_id != response.id:
            return ()
        waiting = [one for one in self._state.waiting_of(conversation.id) if one.if_running is IfRunning.STEER]
        return tuple(one for one in waiting if one.response.user_id == response.user_id)

    async def find_entered(self, response_id: str) -> tuple[Entered, ...]:
        """Return the messages that have entered a turn."""
        return tuple(each for each in self._state.entered.values() if each.response_id == response_id)

    async def withdraw(self, ended: StoredResponse) -> bool:
        """Store the end of a turn that waits."""
        if self._state.waiting.pop(ended.id, None) is None:
            return False
        self._state.responses[ended.id] = ended
        return True
