"""Finding the origin of a turn."""

from collections.abc import Callable

from backend.conversations.domain.conversation_log import Entry, broken_at
from backend.conversations.domain.responses import (
    Conversation,
    OpenedConversation,
    StoredResponse,
    conversation_cache_key,
)
from backend.identity.domain import Caller
from backend.turns.domain.turn_origin import Origin, blank_origin, continued, forked
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import CorruptRecord, NotFound, TurnRunning
from shared.ids import IdPrefix, new_id


class OriginReader:
    """Finds where a turn begins; `secret` keys the cache keys that providers see."""

    def __init__(self, ports: TurnPorts, secret: str) -> None:
        self._conversations = ports.conversations
        self._turns = ports.turns
        self._clock = ports.clock
        self._secret = secret

    async def find(self, caller: Caller, request: TurnRequest) -> Origin:
        """Return the origin: at the end of a conversation, after a response, or in a new conversation.

        Raises:
            NotFound: the conversation or the response does not exist, or is somebody else's.
            CorruptRecord: its log cannot be read, or a part of it is missing.
            TurnRunning: a turn holds the conversation, or is that response.
        """
        if request.conversation_id is not None:
            return continued(await self._opened(caller, request.conversation_id, "conversation", lambda _: True))
        if request.previous_response_id is not None:
            return await self._behind(caller, request.previous_response_id, is_stored=request.is_stored)
        return self._blank(caller)

    async def _behind(self, caller: Caller, response_id: str, *, is_stored: bool) -> Origin:
        response = await self._turns.find(response_id)
        if response is None or not _owns(caller, response):
            raise NotFound(f"There is no response '{response_id}'.", param="previous_response_id")
        if not response.status.is_terminal:
            raise TurnRunning("That response is still running.", param="previous_response_id")

        def is_latest(conversation: Conversation) -> bool:
            return is_stored and conversation.latest_response_id == response.id

        opened = await self._opened(caller, response.conversation_id, "previous_response_id", is_latest)
        conversation = opened.conversation
        if is_latest(conversation):
            return continued(opened)
        length = response.log_end or 0
        log = await self._complete(conversation, await self._conversations.log(conversation.id, length), length)
        items = await self._conversations.all_items(conversation.id, response.items_end or 0)
        return forked(conversation, response, log, items, self._blank(caller).conversation)

    async def _opened(
        self, caller: Caller, conversation_id: str, param: str, is_continued: Callable[[Conversation], bool]
    ) -> OpenedConversation:
        """Read a conversation of the caller, with its log where the turn goes on at its end."""

        def needs_log(found: Conversation) -> bool:
            return _owns(caller, found) and found.running_response_id is None and is_continued(found)

        opened = await self._conversations.opened(conversation_id, needs_log)
        if opened is None or not _owns(caller, opened.conversation):
            raise NotFound(f"There is no conversation '{conversation_id}'.", param=param)
        if opened.conversation.running_response_id is not None and is_continued(opened.conversation):
            raise TurnRunning("A turn is running on this conversation.")
        if needs_log(opened.conversation):
            await self._complete(opened.conversation, opened.log, opened.conversation.log_length)
        return opened

    async def _complete(self, conversation: Conversation, log: tuple[Entry, ...], length: int) -> tuple[Entry, ...]:
        """Return the log if it is complete: with a gap, the model would silently get another prompt.

        Raises:
            CorruptRecord: an entry is missing.
            NotFound: the conversation was deleted meanwhile.
        """
        if not log and length and await self._conversations.find(conversation.id) is None:
            raise NotFound("The conversation was deleted.", param="conversation")
        broken = broken_at(log, length)
        if broken is not None:
            raise CorruptRecord(f"The log entry at position {broken} of conversation {conversation.id} is missing.")
        return log

    def _blank(self, caller: Caller) -> Origin:
        conversation_id = new_id(IdPrefix.CONVERSATION)
        cache_key = conversation_cache_key(self._secret, caller.tenant, conversation_id)
        return blank_origin(caller, conversation_id, cache_key, self._clock.now())


def _owns(caller: Caller, found: StoredResponse | Conversation) -> bool:
    return (found.tenant, found.user_id) == (caller.tenant, caller.user_id)
