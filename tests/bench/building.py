"""Building a request over a long conversation: from the rows as read to the request, and what follows from there.

Services, domain and codec are the real ones; what waits for somebody else (databases, chat_shell) is a fake.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochReason, EpochState, messages_of
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import (
    Conversation,
    FinishedTurn,
    Hold,
    ItemBody,
    NewTurn,
    OpenedConversation,
)
from backend.conversations.sql.codec import Row, conversation_parameters, entry_parameters, to_conversation, to_entries
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from backend.knowledge.domain.labels import Label
from backend.prompt.domain.context_policy import plan_context
from backend.prompt.domain.truncation import PromptBudget, leave_out_of_running
from backend.prompt.domain.turn_calls import CallRecorder, FirstPrompt
from chat_shell.models.chat_completions.encoder import encode_call
from chat_shell.models.ports import ModelCall
from protos.execution.v1 import request_pb2
from shared.models.events import ExecutionEvent, ModelCallStarted, ModelCard
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import AssistantMessage, HistoryMessage, ToolCall, ToolMessage, UserMessage
from shared.prompts.knowledge_tools import list_offered_tools
from shared.prompts.message_order import messages_of_request
from shared.tokens import estimate_tokens, message_tokens
from shared.wire import request_from_proto, request_to_proto
from tests.bench.figures import Figure, percentile
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.openai_house import ADA, TurnHouse
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_turns import FakeTurnStore
from tests.unit.backend.turns.samples import NOW

ENTRIES = (100, 1_000, 3_000)
GOAL_ENTRIES = 1_000
GOAL_MILLISECONDS = 15
DECIDING = "deciding what to leave out of the conversation"
GOALS = {DECIDING: 30.0}
ROUNDS = 41

PROSE = {
    "English": "The tide turns twice a day; who waits at the quay learns its hours and reads the water's colour. ",
    "Chinese": "潮水一日两度涨落，守在码头的人渐渐懂得它的时辰，也会从水色里看出天气的变化。",
}
BASE = KnowledgeBase(
    id="kb_handbook",
    tenant=ADA.tenant,
    name="Harbour handbook",
    summary="Tides, berths and pilots.",
    topics=("tides", "berths"),
    routing_hint="",
    routing_keywords=(),
    version=1,
    created_at=NOW,
)
Measured = Callable[[], Any]


@dataclass(frozen=True)
class LongConversation:
    """A conversation as its rows; its newest turn has ended."""

    conversation: Row
    log: Sequence[Row]
    tokens: int


class Rows(FakeConversationStore):
    """Reads one conversation from its rows, anew each time."""

    def __init__(self, rows: LongConversation) -> None:
        self._rows = rows

    async def open(self, conversation_id: str, needs_log: Callable[[Conversation], bool]) -> OpenedConversation | None:
        conversation = to_conversation(self._rows.conversation)
        log = to_entries(conversation_id, self._rows.log) if needs_log(conversation) else ()
        return OpenedConversation(conversation=conversation, log=log, next_sequence=0)


class ForgetfulTurns(FakeTurnStore):
    """Stores nothing: every turn begins at the same place."""

    async def begin(self, turn: NewTurn) -> None:
        """Store nothing."""

    async def checkpoint(
        self, hold: Hold, output: Sequence[ItemBody], last_event: int, calls: CallsMade = NO_CALLS
    ) -> None:
        """Store nothing."""

    async def finish(self, turn: FinishedTurn) -> bool:
        return True


class Receiver(ScriptedChatShell):
    """A chat_shell that notes when a request has reached it."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived_at = 0.0

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...], None]:
        self.arrived_at = time.perf_counter()
        self.requests[:] = [request]
        yield tuple(answer("So it is.")[1:])

    async def models(self) -> tuple[ModelCard, ...]:
        return (ModelCard(name="demo", context_window_tokens=2_000_000, max_output_tokens=8_000),)


def building_figures(_directory: Path) -> list[Figure]:
    """Measure each length in each language, then the parts of one request."""
    return [figure for language in PROSE for count in ENTRIES for figure in asyncio.run(_figures_of(language, count))]


async def _figures_of(language: str, count: int) -> list[Figure]:
    rows = long_conversation(language, count)
    receiver = Receiver()
    whole = await _building_seconds(rows, receiver)
    is_goal = count == GOAL_ENTRIES
    scale = f"{count:,} entries, {rows.tokens // 1000} k tokens, {language}"
    figures = [_figure(f"building a request, {scale}", whole, GOAL_MILLISECONDS if is_goal else None)]
    if is_goal:
        parts = _parts(rows, receiver.requests[0])
        figures += [_figure(f". {name}, {language}", _seconds(work), GOALS.get(name)) for name, work in parts.items()]
    return figures


def _figure(name: str, seconds: Sequence[float], goal: float | None = None) -> Figure:
    return Figure(f"{name}, p50", percentile(seconds, 0.5) * 1000, "ms", goal)


async def _building_seconds(rows: LongConversation, receiver: Receiver) -> list[float]:
    house = TurnHouse(chat_shell=receiver, turns_class=ForgetfulTurns, conversations_class=lambda _state: Rows(rows))
    await house.knowledge.create_base(BASE, "owner")
    await house.knowledge.set_member(BASE.id, ADA.user_id, MemberRole.OWNER)
    seconds: list[float] = []
    async with house.registry:
        for _ in range(ROUNDS):
            began_at = time.perf_counter()
            await house.ask(input="And tomorrow?", conversation=rows.conversation["id"])
            seconds.append(receiver.arrived_at - began_at)
    return seconds


def _parts(rows: LongConversation, request: ExecutionRequest) -> dict[str, Measured]:
    conversation = to_conversation(rows.conversation)
    message = request_to_proto(request)
    sent_bytes = message.SerializeToString()
    start = _turn_prompt(request, rows)
    entries = to_entries(conversation.id, rows.log)
    budget = PromptBudget(ModelCard(name="demo", context_window_tokens=128_000, max_output_tokens=8_000), 1_000)
    call = ModelCall(
        model=request.model,
        messages=messages_of_request(request),
        tools=list_offered_tools(request.tools, request.knowledge.access_mode),
        parameters=request.parameters,
        cache_key=request.cache_key,
    )
    return {
        "rows to a conversation and its log": lambda: (
            to_conversation(rows.conversation),
            to_entries(conversation.id, rows.log),
        ),
        "request to bytes": lambda: request_to_proto(request).SerializeToString(),
        "chat_shell: bytes to request": lambda: request_from_proto(request_pb2.ExecutionRequest.FromString(sent_bytes)),
        "chat_shell: messages and body of a model call": lambda: (messages_of_request(request), encode_call(call)),
        DECIDING: lambda: leave_out_of_running(entries, "resp_none", budget),
        "beside the model: comparing with the call before": lambda: CallRecorder(start).feed(ModelCallStarted(call=1)),
    }


def _seconds(work: Measured) -> list[float]:
    seconds: list[float] = []
    for _ in range(ROUNDS):
        began_at = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began_at)
    return seconds


def long_conversation(language: str, count: int) -> LongConversation:
    """Make a conversation of turns with a search each, of 200 tokens an entry on average."""
    entries = tuple(_entries(language, count))
    messages = messages_of(entries)
    conversation = Conversation(
        id="conv_long",
        tenant=ADA.tenant,
        user_id=ADA.user_id,
        created_at=NOW,
        metadata={},
        log_length=len(entries),
        epoch=0,
        model="demo",
        instructions="Be brief.",
        functions=(),
        knowledge_base_ids=(BASE.id,),
        cache_key="key",
        running_response_id=None,
        latest_response_id=entries[-1].turn_id,
        sent=SentPrompt(epoch=0, tools="0" * 12, messages=("u" + "0" * 18,) * len(entries), fixed=len(entries)),
    )
    return LongConversation(
        conversation=conversation_parameters(conversation),
        log=entry_parameters(conversation.id, entries),
        tokens=sum(message_tokens(message) for message in messages),
    )


def _turn_prompt(request: ExecutionRequest, rows: LongConversation) -> FirstPrompt:
    """Make the start of a turn whose call before sent the same."""
    start = FirstPrompt(request, len(rows.log) + 1, epoch_reason=None, last=None)
    calls = CallRecorder(start)
    calls.feed(ModelCallStarted(call=1))
    return replace(start, last=calls.list_changed_calls().sent)


def _entries(language: str, count: int) -> Iterator[Entry]:
    plan = plan_context(None, render_bases([Binding(base=BASE, role=MemberRole.OWNER)]), ())
    yield Entry(
        position=0,
        epoch=0,
        turn_id="resp_0",
        kind=EntryKind.DYNAMIC_CONTEXT,
        message=UserMessage(content=plan.kb_meta_prompt),
        created_at=NOW,
        label=(Label(BASE.id, AccessMode.FULL),),
        reset=EpochState(reason=EpochReason.NEW_CONVERSATION),
        context=plan.state,
    )
    for position in range(1, count):
        turn, place = divmod(position - 1, 4)
        kind = (EntryKind.USER, EntryKind.ASSISTANT, EntryKind.TOOL_RESULT, EntryKind.ASSISTANT)[place]
        yield Entry(
            position=position,
            epoch=0,
            turn_id=f"resp_{turn}",
            kind=kind,
            message=_message(language, turn, place),
            created_at=NOW,
            label=(Label(BASE.id, AccessMode.FULL),) if place == 0 else (),
        )


def _message(language: str, turn: int, place: int) -> HistoryMessage:
    call_id = f"call_{turn}"
    match place:
        case 0:
            return UserMessage(content=prose(language, 60, turn))
        case 1:
            arguments = orjson.dumps({"query": prose(language, 40, turn)}).decode()
            call = ToolCall(call_id=call_id, name="knowledge_base_search", arguments=arguments)
            return AssistantMessage(text="", tool_calls=(call,))
        case 2:
            return ToolMessage(call_id=call_id, content=prose(language, 520, turn))
        case _:
            return AssistantMessage(text=prose(language, 180, turn))


def prose(language: str, tokens: int, turn: int) -> str:
    """Make a text of about so many tokens that no other turn has."""
    line = f"{turn}. {PROSE[language]}"
    return line * max(1, round(tokens / estimate_tokens(line)))
