"""Random walks over all that happens to conversations: agents, files, tools, people, crashes; a seed draws each."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.responses import StoredResponse
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import MemberRole
from backend.streams.memory.event_log import MemoryEventLog
from backend.streams.memory.stop_signals import MemoryStopSignals
from backend.turns.services.running_turn import RunningTurn
from shared.errors import BallastError, ContextTooLong
from shared.models.execution import ExecutionRequest, ServedTool, ToolDefinition
from shared.models.served_tools import NO_TOOLS, OfferedTools, ServerTools
from tests.contract.knowledge_cases import make_base
from tests.fakes.attached_files import FakeAgentFiles, FakeAttachedFiles, FakeText
from tests.fakes.openai_house import ADA, BOB, RecordingObserver, TurnHouse
from tests.fakes.store_agents import FakeAgentStore
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.store_state import StoreState
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.turns.asking import pop
from tests.unit.backend.turns.placing import definition, put_agent
from tests.unit.backend.turns.wandering_shell import GatedChatShell

STEPS = 12
BASES = ("kb_a", "kb_b")
PLACEMENTS = {"helper": "anchored", "mover": "classic"}
CLASSIC_WORDS = "Speak as a mover."
KINDS = (
    "ask", "ask", "ask", "look", "look", "agent", "project", "upload", "serve", "steer", "wait", "cut in", "kill",
    "fail", "fork", "pop", "shared",
)  # fmt: skip


class Crash(Exception):
    """A replica dies here."""


@dataclass
class World:
    """What outlives a process: the stores, and what chat_shell was sent."""

    state: StoreState = field(default_factory=StoreState)
    knowledge: FakeKnowledge = field(default_factory=FakeKnowledge)
    agents: FakeAgentStore = field(default_factory=FakeAgentStore)
    files: FakeAttachedFiles = field(default_factory=FakeAttachedFiles)
    agent_files: FakeAgentFiles = field(default_factory=FakeAgentFiles)
    signals: MemoryStopSignals = field(default_factory=MemoryStopSignals)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    requests: list[ExecutionRequest] = field(default_factory=list[ExecutionRequest])
    offered: OfferedTools = NO_TOOLS
    events: MemoryEventLog | None = None
    replicas: int = 0
    shell: Callable[[list[ExecutionRequest], OfferedTools], GatedChatShell] = GatedChatShell

    def replica(self) -> TurnHouse:
        """Start a process over what is stored."""
        self.replicas += 1
        kept: dict[str, Any] = {} if self.events is None else {"events": self.events}
        house = TurnHouse(
            chat_shell=self.shell(self.requests, self.offered),
            state=self.state,
            knowledge=self.knowledge,
            agents=self.agents,
            files=self.files,
            agent_files=self.agent_files,
            signals=self.signals,
            observer=self.observer,
            replica=f"replica-{self.replicas}",
            **kept,
        )
        self.events = house.events
        return house


def shell_of(house: TurnHouse) -> GatedChatShell:
    """Return the chat_shell of a house of this walk."""
    assert isinstance(house.chat_shell, GatedChatShell)
    return house.chat_shell


@dataclass
class Walk:
    """A walk of a seed: its world, what has happened, and the turns that can be continued."""

    seed: int
    world: World = field(default_factory=World)
    seen: set[str] = field(default_factory=set[str])
    ended: list[StoredResponse] = field(default_factory=list[StoredResponse])
    agents: dict[str, str] = field(default_factory=dict[str, str])
    shared: set[str] = field(default_factory=set[str])
    number: int = 0
    kinds: tuple[str, ...] = KINDS
    steps: int = STEPS
    models: tuple[str, ...] = ("helper", "helper", "mover", "demo-model")

    async def run(self) -> Self:
        """Walk to the end, in as many processes as it takes."""
        self.drawn = random.Random(self.seed)
        while True:
            house = self.world.replica()
            with suppress(Crash):
                async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
                    await self._begin(house)
                    while self.number < self.steps:
                        self.number += 1
                        await self._step(house, self.drawn.choice(self.kinds))
                return self

    async def _begin(self, house: TurnHouse) -> None:
        """Take over what was left, and wait for it."""
        if not self.agents:
            for base_id in BASES:
                await self.world.knowledge.create_base(make_base(base_id, tenant="default"), "owner")
                await self.world.knowledge.set_member(base_id, ADA.user_id, MemberRole.READER)
            for name, placement in PLACEMENTS.items():
                words: dict[str, Any] = {"placement": placement, "instructions": CLASSIC_WORDS, "visibility": "tenant"}
                self.agents[name] = await put_agent(house, name, file_ids=["file_a"], **words)
            self._change_project_files()
        await house.recovery.at_start()
        lost = [each.id for each in self.world.state.responses.values() if not each.status.is_terminal]
        for response_id in lost:
            found = await eventually(
                lambda response_id=response_id: self.world.state.responses[response_id],
                lambda response: response.status.is_terminal,
            )
            self._note(found)
        await self._run_waiting(house)

    async def _step(self, house: TurnHouse, kind: str) -> None:
        self.seen.add(kind)
        match kind:
            case "agent":
                await self._change_agent(house)
            case "project":
                self._change_project_files()
            case "serve":
                self._serve(house)
            case "pop":
                await self._pop(house)
            case "steer" | "wait" | "cut in":
                await self._while_running(house, kind)
            case "kill":
                await self._kill(house)
            case "shared":
                await self._share(house)
            case _:
                await self._ask(house, kind)

    def _asked(self, kind: str) -> dict[str, Any]:
        """Draw what a turn is asked with."""
        words = f"FACT-u{self.number} " + "word " * self.drawn.choice((1, 10, 300, 1_200))
        if kind in {"look", "kill", "steer"}:
            sizes = [self.drawn.randint(1, 1_500) for _ in range(self.drawn.randint(1, 5))]
            words = f"LOOK {' '.join(map(str, sizes))}"
        elif kind == "fail":
            words = "FAIL"
        asked: dict[str, Any] = {"input": words, "if_running": "queue"}
        origin = self.drawn.choice(self.ended) if kind == "fork" and self.ended else (self.ended or [None])[-1]
        if origin is not None and self.drawn.random() < 0.95:
            asked["previous_response_id"] = origin.id
        if origin is None or self.drawn.random() < 0.15:
            asked["model"] = self.drawn.choice(self.models)
        if kind == "upload":
            asked["input"] = [{"role": "user", "content": [self._uploaded(), {"type": "input_text", "text": words}]}]
        if self.drawn.random() < 0.1:
            asked["tools"] = [{"type": "mcp", "server_label": "jira"}] if self.world.offered.servers else []
        return asked

    def _uploaded(self) -> dict[str, Any]:
        file_id = f"file_{self.number}"
        text = FakeText(f"{file_id}.txt", "barrel " * self.drawn.choice((1, 100, 900, 9_000)))
        self.world.files.stored |= {(who.user_id, file_id): text for who in (ADA, BOB)}
        return {"type": "input_file", "file_id": file_id}

    def _asker(self, asked: dict[str, Any]) -> Caller:
        origin = self.world.state.responses.get(str(asked.get("previous_response_id")))
        if origin is None:
            return ADA
        owner = self.world.state.conversations[origin.conversation_id].user_id
        is_shared = origin.conversation_id in self.shared
        is_bob = self.drawn.random() < 0.5 if is_shared else owner == BOB.user_id
        return BOB if is_bob else ADA

    async def _ask(self, house: TurnHouse, kind: str) -> None:
        running = await self._started(house, kind)
        if running is not None:
            await self._ended(house, running)

    async def _started(self, house: TurnHouse, kind: str) -> RunningTurn | None:
        asked = self._asked(kind)
        try:
            return await house.start(self._asker(asked), **asked)
        except ContextTooLong:
            self.seen.add("too long")
            return None

    async def _ended(self, house: TurnHouse, running: RunningTurn) -> None:
        ended = await running.wait_until_ended()
        await house.registry.release(running)
        self._note(ended)
        await self._run_waiting(house)

    def _note(self, ended: StoredResponse) -> None:
        if ended.status == "completed":
            self.ended.append(ended)

    async def _while_running(self, house: TurnHouse, kind: str) -> None:
        shell = shell_of(house)
        shell.wait_before(self.drawn.randint(0, 9))
        running = await self._started(house, "steer")
        if running is None:
            shell.waits_before = None
            return
        await asyncio.wait_for(shell.waiting.wait(), PATIENCE_SECONDS)
        how = {"steer": "steer", "wait": "queue", "cut in": "cancel"}[kind]
        who = self._asker({"previous_response_id": running.response.id})
        for part in range(self.drawn.randint(1, 2)):
            with suppress(ContextTooLong):
                await house.queue(who, how=how, input=f"FACT-w{self.number}x{part}", conversation=_place(running))
        shell.gate.set()
        await self._ended(house, running)

    async def _run_waiting(self, house: TurnHouse) -> None:
        """Run what waits, one turn after another."""
        waiting = list(self.world.state.waiting)
        while self.world.state.waiting:
            await house.services.waiting.step()
        for response_id in waiting:
            with suppress(BallastError):
                found = await house.services.responses.find(ADA, response_id)
                self._note(await house.services.responses.wait_until_ended(found))

    async def _kill(self, house: TurnHouse) -> None:
        shell = shell_of(house)
        shell.wait_before(self.drawn.randint(0, 12))
        await house.ports.stored.lease.renew(house.turns)
        running = await self._started(house, "kill")
        if running is not None:
            await asyncio.wait_for(shell.waiting.wait(), PATIENCE_SECONDS)
            # What several models answer has a conversation that nothing can be sent to.
            if self.drawn.random() < 0.4 and not running.response.body.get("lanes"):
                who = BOB if running.response.user_id == BOB.user_id else ADA
                await house.queue(who, how="steer", input=f"FACT-k{self.number}", conversation=_place(running))
            raise Crash
        shell.waits_before = None

    async def _share(self, house: TurnHouse) -> None:
        conversation_id = self.ended[-1].conversation_id if self.ended else ""
        found = self.world.state.conversations.get(conversation_id)
        if found is not None and found.user_id == ADA.user_id:
            members = house.members
            await members.set(ADA, conversation_id, BOB.user_id, ConversationRole.WRITER)
            self.shared.add(conversation_id)

    async def _change_agent(self, house: TurnHouse) -> None:
        name = self.drawn.choice(tuple(PLACEMENTS))
        has_server = bool(self.world.offered.servers)
        words = ("", f"{CLASSIC_WORDS} Again.", CLASSIC_WORDS, f"{CLASSIC_WORDS} " + "Be brief. " * 150)
        fields: dict[str, Any] = {
            "placement": self.drawn.choice((PLACEMENTS[name],) * 4 + tuple(PLACEMENTS.values())),
            "instructions": self.drawn.choice(words),
            "system_prompt": self.drawn.choice((None, None, None, "Own {{model}}.")),
            "reminder": self.drawn.choice((None, "Be kind.", "Be brief.")),
            "file_ids": self.drawn.choice(([], ["file_a"], ["file_a"], ["file_b", "file_a"])),
            "knowledge_base_ids": self.drawn.choice(([], ["kb_a"], ["kb_b", "kb_a"])),
            "tools": [{"type": "mcp", "server_label": "jira"}] if has_server and self.drawn.random() < 0.3 else [],
            "visibility": "tenant",
        }
        await house.agents.change(self.agents[name], definition(**fields))

    def _change_project_files(self) -> None:
        for agent_id in self.agents.values():
            for file_id in ("file_a", "file_b"):
                text = f"{self.number} " + "oar " * self.drawn.choice((1, 50, 700, 9_000))
                self.world.agent_files.stored[f"shelf_{agent_id}", file_id] = FakeText(f"{file_id}.md", text)

    def _serve(self, house: TurnHouse) -> None:
        """Have the tool server list something else, or be away."""
        names = self.drawn.sample(("read", "search", "write"), self.drawn.randint(0, 3))
        served = tuple(_served(name, f"Version {self.number}.") for name in names)
        server = ServerTools(server="jira", is_known=self.drawn.random() < 0.8, tools=served)
        self.world.offered = shell_of(house).offered = OfferedTools(servers=(server,), skills=())
        house.clock.advance(60)

    async def _pop(self, house: TurnHouse) -> None:
        newest = self.ended[-1] if self.ended else None
        if newest is None or newest.conversation_id in self.shared or newest.user_id == BOB.user_id:
            return
        log = self.world.state.entries[newest.conversation_id]
        if log and log[-1].turn_id == newest.id and log[-1].message is not None:
            await pop(house, newest.conversation_id, 2)
            self.ended = [each for each in self.ended if each.conversation_id != newest.conversation_id]


def _place(running: RunningTurn) -> str:
    return running.response.conversation_id


def _served(tool: str, description: str) -> ServedTool:
    name = f"jira__{tool}"
    described = ToolDefinition(name=name, description=description, parameters={"type": "object"}, strict=None)
    return ServedTool(definition=described, server="jira", tool=tool, accepts_restricted=False)
