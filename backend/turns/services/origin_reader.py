"""Finding the origin of a turn: the conversation, and the place in it, that its request continues."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, check_complete, find_pending_calls, history
from backend.conversations.domain.history_fingerprint import (
    Boundary,
    HistoryFingerprint,
    boundaries_cooperatively,
    extend_cooperatively,
    restore_fingerprint,
    root_fingerprint,
    text_with_blank_lines,
)
from backend.conversations.domain.item_removal import is_edited
from backend.conversations.domain.members import ConversationRole, check_role
from backend.conversations.domain.responses import (
    ARRIVING,
    Conversation,
    OpenedConversation,
    SettingsDigest,
    StoredResponse,
    conversation_cache_key,
)
from backend.conversations.domain.turn_input import ParsedInput, read_items, read_string, read_without_items
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.foundation.services.steps import run_cooperatively, run_in_thread_if_large
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.lanes import lane_to_continue
from backend.turns.domain.turn_origin import Origin, TurnStart, blank_origin, branch_origin, extend_origin, fork_origin
from shared.clock import Clock
from shared.errors import InvalidRequest, NotFound, PermissionDenied, TurnRunning, Unavailable
from shared.ids import IdPrefix, new_id

GoesOn = Callable[[Conversation], bool]
"""Whether a turn behind a response goes on in its conversation; otherwise it branches off into a new one."""


class SeenBoundary(NamedTuple):
    """A place in a history, and the response at which its chain ended."""

    boundary: Boundary
    response_id: str


DigestOf = Callable[[Caller, TurnStart], Awaitable[SettingsDigest]]
"""Resolves what a turn asks for where it begins, and returns the digest of it."""


class OriginReader:
    """Finds where a turn begins; `secret` keys the cache keys that providers see.

    `digest_of` resolves what a turn runs with that begins a conversation.
    """

    def __init__(
        self, conversations: ConversationStore, turns: TurnStore, clock: Clock, digest_of: DigestOf, secret: str
    ) -> None:
        self._digest_of = digest_of
        self._access = ConversationAccess(conversations, turns)
        self._conversations = conversations
        self._turns = turns
        self._clock = clock
        self._secret = secret

    async def find(self, caller: Caller, request: TurnRequest, waited_for: str | None = None) -> TurnStart:
        """Return where a turn begins: where the request names, where its history ends, or in a new conversation.

        A turn that has waited for a conversation begins at its end, whatever has been said meanwhile.

        Raises:
            InvalidRequest: the input is not valid there; `param` names the place.
            NotFound: the conversation or the response does not exist, or the caller is no member.
            PermissionDenied: the caller may only read the conversation.
            CorruptRecord: its log cannot be read, or a part of it is missing.
            TurnRunning: a turn holds the conversation, or is that response.
        """
        if conversation_id := waited_for or request.conversation_id:
            opened = await self._open(caller, conversation_id, "conversation", lambda _: True)
            return await read_start(extend_origin(opened), request)
        if request.previous_response_id is not None:
            return await read_start(await self._find_named(caller, request.previous_response_id, request), request)
        start = await read_start(self._blank(caller), request)
        if not request.is_stored:
            return await self._with_key_of_opening(caller, start)
        return await self._recognise(caller, start) or start

    async def _with_key_of_opening(self, caller: Caller, new: TurnStart) -> TurnStart:
        """Give an unstored turn the cache key of all turns of its user that begin with the same message.

        Nothing is left of the turn before by which its conversation could be recognised; the message with which a
        client's resent history opens stays the same, and so providers send all of its turns to one cache.
        """
        root = root_fingerprint(caller.tenant, caller.user_id)
        opening = await run_cooperatively(extend_cooperatively(root, new.read.messages[:1])) or root
        cache_key = conversation_cache_key(self._secret, caller.tenant, opening.digest)
        conversation = new.origin.conversation.model_copy(update={"cache_key": cache_key})
        return replace(new, origin=new.origin._replace(conversation=conversation))

    async def _recognise(self, caller: Caller, new: TurnStart) -> TurnStart | None:
        """Find the response up to which the history in the input was seen; the longest such part counts.

        Of several at which it ends, one with the settings of the request goes on: the others would begin an epoch.
        """
        if not new.read.history:
            return None
        root = root_fingerprint(caller.tenant, caller.user_id)
        found = await self._newest_seen(caller, new, root)
        origin = await self._find_seen(caller, found.response_id) if found is not None else None
        if found is None or origin is None:
            return None
        count = found.boundary.message_count
        rest = new.read.behind(count)
        # Behind an answer only its own words tell what it and its continuation are together.
        behind = restore_fingerprint(found.boundary.digest)
        before, messages = (behind, rest.messages) if rest.messages else (root, new.read.messages)
        return TurnStart(
            origin=origin,
            request=_without_items(new.request, new.read.ends[count - 1]),
            read=rest,
            waiting=find_pending_calls(history(origin.log)),
            seen=await run_cooperatively(extend_cooperatively(before, messages)),
            is_recognised=True,
        )

    async def _newest_seen(self, caller: Caller, new: TurnStart, root: HistoryFingerprint) -> SeenBoundary | None:
        """Look up the chains of a history; where its end is not found, also those of the release before."""
        boundaries = before = await run_cooperatively(boundaries_cooperatively(root, new.read.history))
        if not boundaries:
            return None
        wanted = await self._digest_of(caller, new)
        known = await self._turns.newest_seen([each.digest for each in boundaries], wanted)
        if boundaries[-1].digest not in known:
            before = await run_cooperatively(boundaries_cooperatively(root, new.read.history, text_with_blank_lines))
            if before != boundaries:
                known = {**await self._turns.newest_seen([each.digest for each in before], wanted), **known}
        for boundary, same in zip(reversed(boundaries), reversed(before), strict=True):
            if response_id := known.get(boundary.digest) or known.get(same.digest):
                return SeenBoundary(boundary, response_id)
        return None

    async def _find_seen(self, caller: Caller, response_id: str) -> Origin | None:
        """Return the place behind a response; None where it was deleted meanwhile, or the caller may not go on there.

        What else stands behind it in its conversation, the client has not seen: then the turn branches off.
        """
        response = await self._turns.find(response_id)
        is_own = response is not None and (response.tenant, response.user_id) == (caller.tenant, caller.user_id)
        if response is None or not is_own or not response.status.is_terminal:
            return None

        def goes_on(found: Conversation) -> bool:
            return found.latest_response_id == response.id and found.log_length == response.log_end

        try:
            return await self._behind(caller, response, goes_on)
        except (NotFound, PermissionDenied):
            return None

    async def _find_named(self, caller: Caller, response_id: str, request: TurnRequest) -> Origin:
        param = "previous_response_id"
        response = await self._turns.find(response_id)
        missing = NotFound(f"There is no response '{response_id}'.", param=param)
        if response is None:
            raise missing
        if not response.status.is_terminal:
            await self._access.response(caller, response_id, ConversationRole.WRITER, param)
            raise await self._error_while_running(response, param)
        lane = lane_to_continue(response.body, request.model if response.user_id == caller.user_id else None)
        if lane is not None:
            return await self._find_named(caller, lane.response_id, request)
        if response.log_end is None:
            await self._access.response(caller, response_id, ConversationRole.WRITER, param)
            message = "That response ended before it began; name the one before it, or the conversation."
            raise InvalidRequest(message, param=param)
        try:
            # Its conversation is read here in any case, and tells who may go on.
            return await self._behind(
                caller, response, lambda found: request.is_stored and found.latest_response_id == response.id
            )
        except NotFound:
            if (response.tenant, response.user_id) == (caller.tenant, caller.user_id):
                raise
            raise missing from None

    async def _error_while_running(self, response: StoredResponse, param: str) -> TurnRunning | Unavailable:
        held = await self._conversations.find(response.conversation_id)
        if held is not None and held.running_response_id == ARRIVING:
            return held.refusal
        return TurnRunning("That response is still running.", param=param)

    async def _behind(self, caller: Caller, response: StoredResponse, goes_on: GoesOn) -> Origin:
        opened = await self._open(caller, response.conversation_id, "previous_response_id", goes_on)
        conversation = opened.conversation
        length = response.log_end or 0
        if goes_on(conversation) and not is_edited(opened.log[length:]):
            return extend_origin(opened)
        log = await self._complete(conversation, await self._conversations.log(conversation.id, length), length)
        items = await self._conversations.all_items(conversation.id, response.items_end or 0, length)
        return fork_origin(conversation, response, log, items, self._blank(caller).conversation)

    async def branch(self, caller: Caller, start: TurnStart) -> TurnStart:
        """Return where a turn begins that branches off from where another one does."""
        origin = start.origin
        before = origin.conversation
        items = origin.items
        if not origin.is_new:
            items = await self._conversations.all_items(before.id, origin.next_sequence, before.log_length)
        return replace(start, origin=branch_origin(origin, items, self._blank(caller).conversation))

    async def _open(self, caller: Caller, conversation_id: str, param: str, is_continued: GoesOn) -> OpenedConversation:
        """Read a conversation in which the caller may run turns, with its log where the turn goes on at its end."""

        def needs_log(found: Conversation) -> bool:
            return (
                found.people.allows(caller, ConversationRole.WRITER)
                and found.running_response_id is None
                and is_continued(found)
            )

        opened = await self._conversations.open(conversation_id, needs_log)
        role = opened.conversation.people.role_of(caller) if opened is not None else None
        missing = NotFound(f"There is no conversation '{conversation_id}'.", param=param)
        check_role(role, ConversationRole.WRITER, missing)
        if opened is None:
            raise missing
        if opened.conversation.running_response_id is not None and is_continued(opened.conversation):
            raise opened.conversation.refusal
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
        check_complete(conversation.id, log, length)
        return log

    def _blank(self, caller: Caller) -> Origin:
        conversation_id = new_id(IdPrefix.CONVERSATION)
        cache_key = conversation_cache_key(self._secret, caller.tenant, conversation_id)
        return blank_origin(caller, conversation_id, cache_key, self._clock.now())


async def read_start(origin: Origin, request: TurnRequest) -> TurnStart:
    """Read the input of a turn that begins at an origin."""
    waiting = find_pending_calls(history(origin.log))
    count = 1 if isinstance(request.input, str) else len(request.input)
    read = await run_in_thread_if_large(count, lambda: _read(request, waiting))
    # What several people have said, no client resends as a history of its own.
    is_kept = request.is_stored and not origin.conversation.people.is_shared
    seen = await run_cooperatively(extend_cooperatively(origin.seen, read.messages)) if is_kept else None
    return TurnStart(origin=origin, request=_in_order_read(request, read), read=read, waiting=waiting, seen=seen)


def _read(request: TurnRequest, waiting: tuple[str, ...]) -> ParsedInput:
    if isinstance(request.input, str):
        return read_string(request.input, waiting)
    return read_items(request.input, waiting) if request.input else read_without_items(waiting)


def _in_order_read(request: TurnRequest, read: ParsedInput) -> TurnRequest:
    if isinstance(request.input, str) or not read.order:
        return request
    return request.model_copy(update={"input": [request.input[place] for place in read.order]})


def _without_items(request: TurnRequest, count: int) -> TurnRequest:
    """Return a request whose list of items lacks the first ones."""
    return request if isinstance(request.input, str) else request.model_copy(update={"input": request.input[count:]})
