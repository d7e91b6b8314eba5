"""Playing a conversation in a layout: which requests a provider gets to see.

Log, epochs, compaction and context are the backend's own code, and the messages that chat_shell's own code makes of
its requests are what layouts arrange. Providers, stores and processes are left out; a process that dies leaves what
the log holds by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from pydantic import TypeAdapter

from backend.conversations.domain.conversation_log import EpochReason
from backend.conversations.domain.responses import ConversationSettings
from backend.conversations.domain.turn_input import ParsedInput
from backend.conversations.domain.turn_log import TurnLog
from backend.conversations.domain.withheld import find_withheld_turns, labels_in
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, strictest_mode
from backend.openai_api.domain.presets import ResolvedModel
from backend.openai_api.domain.requested_settings import find_asked_model, own_settings
from backend.openai_api.domain.turn_request import TurnRequest
from backend.prompt.domain.context_policy import BaseText
from backend.prompt.domain.epochs import CallerAccess, Epoch, plan_epoch
from backend.prompt.domain.system_message import prompt_form
from backend.turns.domain.turn_origin import Origin, TurnStart, blank_origin
from backend.turns.services.turn_assembly import assemble
from backend.turns.services.turn_draft import AskedTurn, TurnDraft, TurnPolicy, TurnSettings
from chat_shell.models.anthropic_messages.encoder import block_count, cache_marks
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.domain.turn import CallModel, TurnState
from shared.models.canonical import canonical_parts
from shared.models.events import MessagesAdded, ModelCallStarted, ModelCard
from shared.models.execution import AccessMode, ExecutionRequest, ToolDefinition
from shared.models.messages import Message, SystemMessage, TurnMessage, UserMessage
from shared.prompts.knowledge_tools import list_offered_tools
from tests.bench.cache.conversations import Conversation, Ending, Turn
from tests.bench.cache.layouts import Layout
from tests.bench.cache.simulators import Sent

_CALLER = Caller(user_id="user_1", tenant="default", role=KeyRole.USER)
_MAX_OUTPUT_SHARE = 10
_MAX_CALLS = 100

Added = tuple[TurnMessage, ...]
"""What a turn has put behind its first messages."""


@dataclass(frozen=True)
class Call:
    """A model call. `before` is the newest earlier one that lies wholly in the log behind which this one stands."""

    turn_id: str
    model: str
    epoch: int
    messages: tuple[Message, ...]
    sent: Sent
    before: int | None


@dataclass(frozen=True)
class Played:
    """The model calls of a conversation, in the order in which they are sent."""

    calls: tuple[Call, ...]
    resets: tuple[EpochReason, ...]


_ORIGIN = TypeAdapter(Origin)


@dataclass(frozen=True)
class _Place:
    """Behind a turn: what is stored, the newest call that lies in it, and the newest request that was made."""

    origin: Origin
    call: int | None
    request: ExecutionRequest | None


@dataclass(frozen=True)
class _Begun:
    """A turn whose first entries are stored."""

    request: ExecutionRequest
    origin: Origin
    tools: tuple[ToolDefinition, ...]
    head: bytes
    messages: tuple[Message, ...]


def play(conversation: Conversation, layout: Layout) -> Played:
    """Play a conversation from its beginning to its end."""
    return _Stage(conversation, layout).played()


class _Stage:
    """A conversation under way."""

    def __init__(self, conversation: Conversation, layout: Layout):
        self._conversation = conversation
        self._layout = layout
        self._policy = _policy(keeps_context=layout.keeps_context)
        self._calls: list[Call] = []
        self._places: dict[str, _Place] = {}
        self._resets: list[EpochReason] = []

    def played(self) -> Played:
        """Play all turns."""
        for turn in self._conversation.turns:
            self._places[turn.id] = self._play(turn)
        return Played(tuple(self._calls), tuple(self._resets))

    def _play(self, turn: Turn) -> _Place:
        place = self._start(turn)
        begun = self._begin(turn, place)
        if turn.ending is Ending.UNSENT:
            return _Place(_ended(begun, turn, ()), place.call, begun.request)
        call = place.call
        added, moving = _reminded(begun, ())
        for _ in range(turn.attempts):
            call = self._send(turn, begun, added, moving, call)
        if turn.ending is Ending.LOST:
            return _Place(_ended(begun, turn, ()), place.call, begun.request)
        return self._go_on(turn, begun, added, place.call, call)

    def _go_on(
        self, turn: Turn, begun: _Begun, first: Added, stored_call: int | None, first_call: int | None
    ) -> _Place:
        """Run the tool loop; a turn that is cut loses its last round, and the call which carried that."""
        added = first
        calls, stored = [first_call], [added]
        for step in turn.steps[:-1]:
            added, moving = _reminded(begun, (*added, *step.messages))
            calls.append(self._send(turn, begun, added, moving, calls[-1]))
            stored.append(added)
        if turn.ending is not Ending.CUT:
            return _Place(_ended(begun, turn, (*added, *turn.steps[-1].messages)), calls[-1], begun.request)
        rounds = len(turn.steps[:-1][:-1])
        newest = calls[rounds] if rounds else stored_call
        return _Place(_ended(begun, turn, stored[rounds] if rounds else ()), newest, begun.request)

    def _start(self, turn: Turn) -> _Place:
        if turn.after is None:
            return _Place(blank_origin(_CALLER, "conv_1", "key_1", turn.sent_at), None, None)
        place = self._places[turn.after]
        if not turn.is_reloaded:
            return place
        reloaded = _ORIGIN.validate_json(_ORIGIN.dump_json(place.origin))
        return _Place(reloaded, place.call, place.request)

    def _begin(self, turn: Turn, place: _Place) -> _Begun:
        running, new_turn = assemble(self._draft(turn, place.origin))
        if running.starts_epoch and place.origin.log:
            self._resets.append(EpochReason(running.epoch.reason))
        log = new_turn.entries if place.origin.is_new else (*place.origin.log, *new_turn.entries)
        tools = list_offered_tools(running.request.tools, running.request.knowledge.access_mode)
        return _Begun(
            request=running.request,
            origin=place.origin._replace(conversation=new_turn.conversation, log=log),
            tools=tools,
            head=canonical_parts(tools, ())[0],
            messages=self._layout.arrange(running.request, place.request),
        )

    def _draft(self, turn: Turn, origin: Origin) -> TurnDraft:
        request = _request(turn)
        settings = own_settings(request, origin.conversation, (), find_asked_model(request, origin.conversation))
        read, meaning = (
            ParsedInput(instructions=(), history=(), current=turn.user),
            ResolvedModel(card=self._card(settings.model)),
        )
        return TurnDraft(
            policy=self._policy,
            asked=AskedTurn(_CALLER, request),
            start=TurnStart(origin, request, read, waiting=(), seen=None),
            chosen=TurnSettings(meaning, None, request, settings, settings, turn.bindings),
            request_id=turn.id,
            response_id=turn.id,
            now=turn.sent_at,
            read=read,
            base_texts=_rendered(turn.bindings),
            dynamic_blocks=turn.blocks,
            epoch=_epoch(turn, origin, settings),
            blocks=turn.placed,
        )

    def _card(self, model: str) -> ModelCard:
        window_tokens = self._conversation.window_tokens
        return ModelCard(
            name=model, context_window_tokens=window_tokens, max_output_tokens=window_tokens // _MAX_OUTPUT_SHARE
        )

    def _send(self, turn: Turn, begun: _Begun, added: Added, moving: str, before: int | None) -> int:
        messages = (*begun.messages, *added)
        header = 1 if isinstance(messages[0], SystemMessage) else 0
        stored = header + len(begun.request.history)
        call = Call(
            turn_id=turn.id,
            model=turn.settings.model,
            epoch=begun.request.epoch,
            messages=messages,
            sent=_sent(begun, messages, stored, moving),
            before=before,
        )
        self._calls.append(call)
        return len(self._calls) - 1


def _policy(*, keeps_context: bool) -> TurnPolicy:
    return TurnPolicy(
        time_zone="Europe/Berlin",
        timeout=timedelta(minutes=10),
        max_knowledge_calls=8,
        replica="replica_1",
        secret="secret",
        keeps_context=keeps_context,
    )


def _request(turn: Turn) -> TurnRequest:
    functions = [{"type": "function", **function.model_dump()} for function in turn.settings.functions]
    base_ids = [binding.base.id for binding in turn.bindings]
    search = [{"type": "file_search", "vector_store_ids": base_ids}] if base_ids else []
    body = {
        "input": turn.user,
        "model": turn.settings.model,
        "instructions": turn.settings.instructions,
        "tools": [*search, *functions],
    }
    return TurnRequest.model_validate(body)


def _reminded(begun: _Begun, added: Added) -> tuple[Added, str]:
    """Return what a turn has added with the reminder that stays, and the one that moves; of each there may be none."""
    state = TurnState(begun.messages, frozenset(), "auto", _MAX_CALLS, added=added)
    reminder = reminder_of_call(begun.request, state, CallModel(1, state.messages, "auto"))
    if not begun.request.keeps_reminders:
        return added, reminder
    return ((*added, UserMessage(content=reminder)) if reminder else added), ""


def _ended(begun: _Begun, turn: Turn, added: Added) -> Origin:
    """Store what the turn has added; one that added nothing is void."""
    log = TurnLog(turn.id, begun.request.epoch, len(begun.origin.log))
    for message in added:
        if isinstance(message, UserMessage):
            log.feed(ModelCallStarted(call=1, reminder=str(message.content), reminder_stays=True))
        else:
            log.feed(MessagesAdded(messages=(message,)))
    entries = log.end(turn.sent_at, is_success=bool(added))
    conversation = begun.origin.conversation
    length = len(begun.origin.log) + len(entries)
    return begun.origin._replace(
        conversation=conversation.model_copy(update={"log_length": length, "running_response_id": None}),
        is_new=False,
        log=(*begun.origin.log, *entries),
    )


def _epoch(turn: Turn, origin: Origin, settings: ConversationSettings) -> Epoch:
    mode = AccessMode.RESTRICTED if turn.settings.is_restricted else AccessMode.FULL
    withheld = tuple(sorted(find_withheld_turns(origin.log, {label.base_id: mode for label in labels_in(origin.log)})))
    modes = {binding.base.id: binding.role.access_mode for binding in turn.bindings}
    access = CallerAccess(mode=strictest_mode(turn.bindings), withheld=withheld, modes=modes)
    return plan_epoch(origin.conversation, origin.log, settings, access, prompt_form(turn.placed, "", {}))


def _sent(begun: _Begun, messages: Sequence[Message], stored: int, moving: str) -> Sent:
    marks = cache_marks(messages, stored, has_tools=bool(begun.tools))
    header = int(isinstance(messages[0], SystemMessage)) if marks.on_header else 0
    on_header = (header,) if marks.on_header else ()
    sent = (*messages, *([UserMessage(content=moving)] if moving else []))
    return Sent(
        parts=(begun.head, *(_part((message,)) for message in sent)),
        blocks=(len(begun.tools), *map(block_count, sent)),
        marks=(*on_header, *(place + 1 for place in marks.messages)),
        breakpoints=tuple(place for place, message in enumerate(messages, 1) if message.role != "assistant"),
    )


# Layouts play the same turns: what they have in common is made once.
def _rendered(bindings: tuple[Binding, ...]) -> tuple[BaseText, ...]:
    return _rendered_json(tuple(binding.model_dump_json() for binding in bindings))


@lru_cache(maxsize=256)
def _rendered_json(bindings: tuple[str, ...]) -> tuple[BaseText, ...]:
    return render_bases(tuple(map(Binding.model_validate_json, bindings)))


@lru_cache(maxsize=4_096)
def _part(message: tuple[Message]) -> bytes:
    return canonical_parts((), message)[1]
