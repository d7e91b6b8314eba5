"""What one more delta crosses, from the bytes of a provider to those of a client: few steps, and few generators."""

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any

import orjson

from backend.chat_shell_client.chosen import connect_chat_shell
from backend.streams.memory.event_log import MemoryEventLog
from chat_shell.foundation.services.admission import Admission
from chat_shell.knowledge.services.knowledge_tools import build_knowledge_tools
from chat_shell.models.configured.directory import build_models
from chat_shell.models.configured.entries import ModelEntry
from chat_shell.models.transport.streaming import open_session
from chat_shell.turns.domain.reminders import reminder_of_call
from chat_shell.turns.services.run_tools import Toolbox
from chat_shell.turns.services.run_turn import RunTurn, TurnDefaults
from chat_shell.turns.services.turn_service import TurnService
from chat_shell.turns.services.turn_toolbox import TurnToolbox
from shared.clock import Clock
from shared.retries import RetryPolicy
from tests.fakes.certificates import no_certificates
from tests.fakes.chat_shell_runner import ScriptedRunner, ScriptedTool, saying
from tests.fakes.chat_shell_servers import MAX_BYTES, SERVICE_TOKEN, Shell, serve_grpc
from tests.fakes.http_api import FakeHouse
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_scripted import RecordingObserver
from tests.fakes.model_server import FakeModelServer, Reply
from tests.fakes.openai_house import ADA, TurnHouse
from tests.fakes.safe_summaries import ScriptedSummaries
from tests.fakes.served_turns import RESPONSES, SAID, scope_of
from tests.fakes.supervision import make_supervisor
from tests.house.sources import PRODUCT, ROOT
from tests.patience import PATIENCE_SECONDS

HOPS, GENERATORS = 16, 4
"""Functions that may wait and run a line of their own for each delta, once an object; and those of them that are
asynchronous generators. What stands around them and does nothing is none, nor is what they call and need not await."""

DELTAS, FIRST_DELTAS = 16, 4
FOREVER_SECONDS = 3600.0


class Hops:
    """Notes the hops of each delta, by their code."""

    def __init__(self) -> None:
        self._roots = tuple(f"{ROOT / name}/" for name in PRODUCT)
        self._found: dict[tuple[CodeType, int], CodeType] = {}
        self.of_deltas: list[list[CodeType]] = []

    def trace(self, frame: FrameType, _event: str, _argument: object) -> Any:
        """Trace the lines of functions that wait."""
        waits = frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
        return self._note if waits and frame.f_code.co_filename.startswith(self._roots) else None

    def _note(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            self._found[frame.f_code, id(frame.f_locals.get("self"))] = frame.f_code
        return self._note

    def end_delta(self) -> None:
        """Note that a delta has reached the client."""
        self.of_deltas.append(list(self._found.values()))
        self._found.clear()

    def least(self) -> list[CodeType]:
        """Return the hops of the delta that had the fewest: beside others something else was at work."""
        return min(self.of_deltas[FIRST_DELTAS:-1], key=len)


@asynccontextmanager
async def chat_shell_calling(base_url: str, clock: Clock) -> AsyncGenerator[str]:
    knowledge, observer = build_knowledge_tools(KnowledgeInMemory(), ScriptedSummaries()), RecordingObserver()
    opening = partial(TurnToolbox, Toolbox(knowledge, clock, observer, FOREVER_SECONDS), MAX_BYTES)
    async with open_session() as session:
        models = build_models((ModelEntry(name="fake-model", base_url=base_url),), session, clock)
        defaults = TurnDefaults(RetryPolicy(jitter=lambda: 0.0))
        run = RunTurn(models, opening, reminder_of_call, clock, observer, defaults)
        tool, admission = ScriptedTool(), Admission()
        turns = TurnService(run, tool, models.cards, clock, admission)
        async with serve_grpc(Shell(ScriptedRunner(saying()), tool, admission, turns)) as server:
            yield f"grpc://127.0.0.1:{server.port}"


async def hops_of(provider: FakeModelServer, address: str, house: FakeHouse) -> Hops:
    """Stream a turn whose provider sends a delta when the client has got the one before."""
    parts: dict[str, Any] = {"certificates": no_certificates(), "supervisor": make_supervisor()}
    client = connect_chat_shell(address, SERVICE_TOKEN, clock=house.clock, max_message_bytes=MAX_BYTES, **parts)
    events = MemoryEventLog(FOREVER_SECONDS, silence_seconds=FOREVER_SECONDS)
    house.turns = TurnHouse(chat_shell=client, state=house.state, events=events, checkpoint_seconds=FOREVER_SECONDS)
    asked = [{"type": "http.request", "body": orjson.dumps(SAID[RESPONSES] | {"model": "fake-model", "stream": True})}]
    hops = Hops()

    async def receive() -> dict[str, Any]:
        return asked.pop() if asked else await asyncio.get_running_loop().create_future()

    async def send(message: MutableMapping[str, Any]) -> None:
        if b"event: response.output_text.delta" in message.get("body", b""):
            hops.end_delta()
            provider.release()

    app, scope = house.app(), scope_of(RESPONSES, await house.key(ADA.user_id))
    provider.script(Reply(text=("word ",) * DELTAS, holds=True))
    provider.release()
    async with asyncio.timeout(PATIENCE_SECONDS), house.turns.registry:
        traced_before = sys.gettrace()
        sys.settrace(hops.trace)
        try:
            await app(scope, receive, send)
        finally:
            sys.settrace(traced_before)
    await client.close()
    return hops


async def test_a_delta_takes_few_hops() -> None:
    house = FakeHouse()
    async with FakeModelServer() as provider, chat_shell_calling(provider.base_url, house.clock) as address:
        hops = await hops_of(provider, address, house)
    assert len(hops.of_deltas) == DELTAS
    found = hops.least()
    names = [f"{code.co_filename.removeprefix(str(ROOT))} {code.co_qualname}" for code in found]
    assert len(found) <= HOPS, "\n".join(names)
    assert sum(bool(code.co_flags & inspect.CO_ASYNC_GENERATOR) for code in found) <= GENERATORS, "\n".join(names)
