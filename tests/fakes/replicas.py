"""Replicas of a backend, of which one takes over what another has left."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.responses import StoredResponse
from shared.models.events import (
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    SearchFinished,
    SearchResult,
    SearchStarted,
)
from shared.models.execution import ExecutionRequest
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell
from tests.fakes.openai_house import TurnHouse
from tests.fakes.store_state import StoreState
from tests.patience import PATIENCE_SECONDS, eventually

SEARCH = ToolCall(call_id="k1", name="knowledge_base_search", arguments="{}")
HIT = SearchResult(number=1, file_id="doc_1", filename="handbook.md", score=0.5, text="Whales sleep.")
EXCHANGE = (AssistantMessage(text="", tool_calls=(SEARCH,)), ToolMessage(call_id="k1", content="Whales sleep."))


def searched() -> list[Any]:
    """Script a first model call that searches."""
    return [
        ModelCallStarted(call=1),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="k1", queries=("whales",)),
        SearchFinished(call_id="k1", failed=False, results=(HIT,)),
        MessagesAdded(messages=EXCHANGE),
        ModelCallStarted(call=2),
    ]


class Killed(Exception):
    """The process of a replica ends here."""


class Replicas:
    """Replicas over one state, each of which a test may kill; `last` is the one that was started last."""

    def __init__(self, **fields: Any) -> None:
        self.state = StoreState()
        self._fields = fields
        self._count = 0
        self.last = self.make()

    def make(self, *scripts: Sequence[Any], **fields: Any) -> TurnHouse:
        self._count += 1
        shared: dict[str, Any] = {"state": self.state, "replica": f"replica-{self._count}", **self._fields, **fields}
        if self._count > 1:
            shared |= {"events": self.last.events, "signals": self.last.signals}
        self.last = TurnHouse(chat_shell=ScriptedChatShell(*scripts), **{**shared, **fields})
        return self.last

    async def killed(self, script: Sequence[Any], *, said: str = "", **asked: Any) -> StoredResponse:
        """Run a turn until its script waits and its output is stored, and kill its process then."""
        running = None
        house = self.make([*script, asyncio.Event()])
        with suppress(Killed):
            async with house.registry:
                await house.ports.stored.lease.renew(house.turns)
                running = await house.start(**asked)
                await eventually(lambda: self.has_come(house, running.response.id, script, said), bool)
                raise Killed
        assert running is not None
        return self.state.responses[running.response.id]

    def has_come(self, house: TurnHouse, response_id: str, script: Sequence[Any], said: str) -> bool:
        is_settled = not any(isinstance(step, MessagesAdded) for step in script) or (
            len(self.state.entries[self.state.responses[response_id].conversation_id]) > 1
        )
        is_said = said in str(self.state.responses[response_id].body["output"])
        is_shown = not any(isinstance(step, SearchStarted) for step in script) or (
            self.state.responses[response_id].last_event > 1
        )
        return bool(house.sent) and is_settled and is_said and is_shown

    @asynccontextmanager
    async def survivor(self, *scripts: Sequence[Any], **fields: Any) -> AsyncGenerator[TurnHouse]:
        """Start a replica that takes over all turns, and wait for them at its end."""
        house = self.make(*scripts, **fields)
        async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
            await house.recovery.at_start()
            yield house

    async def continued(self, lost: StoredResponse, *scripts: Sequence[Any], **fields: Any) -> StoredResponse:
        """Let a new replica take the turn over, and return its response at the end."""
        async with self.survivor(*scripts, **fields):
            return await eventually(lambda: self.state.responses[lost.id], lambda found: found.status.is_terminal)

    def log_of(self, response: StoredResponse) -> list[Entry]:
        return self.state.entries[response.conversation_id]


def bytes_of(request: ExecutionRequest) -> object:
    """Return all of a request that reaches the model."""
    messages = (*messages_of_request(request), *request.added)
    return messages, request.tools, request.parameters, request.model, request.cache_key


async def check_events(house: TurnHouse, response: StoredResponse) -> list[dict[str, Any]]:
    """Return the events of an ended response, which have no gap and no number twice, and end with its terminal one."""
    events = await house.all_events(response)
    assert [event["sequence_number"] for event in events] == list(range(response.last_event + 1))
    assert events[-1]["response"]["status"] == response.status
    for after in range(-1, response.last_event):
        assert await house.all_events(response, after) == events[after + 1 :]
    return events
