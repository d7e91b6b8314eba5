"""The services of turns over in-memory stores, ports and a scripted chat_shell."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import orjson

from backend.agents.services.agents import AgentPresets, open_agent_files
from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.leases import LeaseTerms
from backend.conversations.domain.model_calls import CacheMiss
from backend.conversations.domain.prompt_record import MissCause
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import IfRunning
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.conversation_members import ConversationMembers
from backend.conversations.services.conversations import CallerConversations
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.services.admission import Admission
from backend.foundation.services.supervision import Supervisor
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.services.knowledge_access import LabelAccess
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.limits.services.turn_rates import TurnRates
from backend.prompt.services.read_prompts import ReadPrompts
from backend.restricted.domain.outgoing_events import CutCause
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.streams.memory.event_log import MemoryEventLog
from backend.streams.memory.stop_signals import MemoryStopSignals
from backend.streams.services.follow_events import FollowEvents
from backend.streams.services.reader_rights import RIGHTS_SECONDS, RightsOfReaders
from backend.turns.domain.queued_request import AcknowledgedTurn
from backend.turns.ports.dynamic_blocks import DynamicBlockSource
from backend.turns.ports.observer import CompactionOutcome, TakeoverOutcome
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.compact_input import CompactInput
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.count_input import CountInput
from backend.turns.services.lanes.start_lanes import StartLanes
from backend.turns.services.prepare_turn import PrepareTurn
from backend.turns.services.queue.begin_waiting import BeginWaiting
from backend.turns.services.queue.queue_turn import QueueTurn
from backend.turns.services.request.input_files import InputFiles
from backend.turns.services.request.model_catalogue import ModelCatalogue
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.request.project_files import ProjectFiles
from backend.turns.services.responses import Responses
from backend.turns.services.resume.recover_turn import RecoverTurn
from backend.turns.services.resume.recovery import Recovery
from backend.turns.services.run.lease import TurnLease
from backend.turns.services.running_turn import RunningTurn
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_ports import StoredTurns, TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from backend.turns.services.turn_runner import RunTurns
from backend.turns.services.unstored_turns import UnstoredTurns
from backend.turns.services.use_cases import TurnServices
from backend.turns.wiring import turn_preparation
from shared.models.execution import ExecutionRequest
from tests.fakes.attached_files import FakeAgentFiles, FakeAttachedFiles, NotingReader
from tests.fakes.chat_shell_scripted import ScriptedChatShell
from tests.fakes.parsed_requests import parse_turn_request
from tests.fakes.rates import unlimited_rates
from tests.fakes.store_agents import FakeAgentStore
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.store_state import StoreState
from tests.fakes.store_turns import FakeTurnStore
from tests.fakes.store_waiting import FakeWaitingTurnStore
from tests.fakes.supervision import RecordingFailures, make_supervisor
from tests.patience import PATIENCE_SECONDS

CAT = Caller(user_id="cat", tenant="default", role=KeyRole.USER)
ADA = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
BOB = Caller(user_id="bob", tenant="default", role=KeyRole.USER)
SECRET = "secret-of-the-tests"


class RecordingObserver:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.queued: list[tuple[str, str]] = []
        self.steered: list[tuple[str, int]] = []
        self.started: list[str] = []
        self.finished: list[StoredResponse] = []
        self.epochs: list[tuple[int, str]] = []
        self.broken: list[BaseException] = []
        self.first_deltas = 0
        self.prompts: list[tuple[int, int]] = []
        self.drifts: list[tuple[str, int, str]] = []
        self.cuts: list[tuple[str, CutCause]] = []
        self.taken: list[tuple[str, str]] = []
        self.left: list[str] = []
        self.compactions: list[str] = []
        self.misses: list[tuple[MissCause | None, str]] = []
        self.left_out: list[tuple[str, int]] = []

    def turn_queued(self, response: StoredResponse, how: IfRunning) -> None:
        self.queued.append((response.id, how.value))

    def turn_steered(self, response: StoredResponse, messages: int) -> None:
        self.steered.append((response.id, messages))

    def turn_started(self, response: StoredResponse, request_id: str) -> None:
        self.started.append(response.id)

    def epoch_started(self, conversation_id: str, epoch: int, reason: str) -> None:
        self.epochs.append((epoch, reason))

    def history_compacted(self, response: StoredResponse, outcome: CompactionOutcome, seconds: float) -> None:
        self.compactions.append(outcome.value)

    def prompt_sent(self, reused_tokens: int, new_tokens: int) -> None:
        self.prompts.append((reused_tokens, new_tokens))

    def cache_missed(self, miss: CacheMiss) -> None:
        self.misses.append((miss.cause, miss.diagnosis))

    def prompt_drifted(self, response: StoredResponse, call: int, path: str) -> None:
        self.drifts.append((response.id, call, path))

    def turn_taken_over(self, response: StoredResponse, outcome: TakeoverOutcome) -> None:
        self.taken.append((response.id, outcome.value))

    def turn_left(self, response: StoredResponse) -> None:
        self.left.append(response.id)

    def answer_cut(self, response: StoredResponse, cause: CutCause, seconds: float) -> None:
        self.cuts.append((response.id, cause))

    def texts_left_out(self, base_id: str, count: int) -> None:
        self.left_out.append((base_id, count))

    def first_delta(self, seconds: float) -> None:
        self.first_deltas += 1

    def deltas(self, count: int, seconds: float) -> None:
        """Count nothing."""

    def turn_finished(self, response: StoredResponse) -> None:
        self.finished.append(response)

    def turn_broke(self, response_id: str, error: BaseException) -> None:
        self.broken.append(error)


EPOCH = datetime.fromtimestamp(0, UTC)


class FakeAnswerCuts:
    """Remembers the answers that were cut."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, tuple[str, ...]]] = []

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        self.counted.append((user_id, tuple(base_ids)))


@dataclass
class TurnHouse:
    """All that turns need; two houses over the same state and ports are two replicas."""

    chat_shell: ChatShell = field(default_factory=ScriptedChatShell)
    state: StoreState = field(default_factory=StoreState)
    events: MemoryEventLog = field(
        default_factory=lambda: MemoryEventLog(600, lambda _seconds, _call: _NoTimer(), 0.01)
    )
    signals: MemoryStopSignals = field(default_factory=MemoryStopSignals)
    knowledge: FakeKnowledge = field(default_factory=FakeKnowledge)
    agents: FakeAgentStore = field(default_factory=FakeAgentStore)
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    supervisor: Supervisor | None = None
    cuts: FakeAnswerCuts = field(default_factory=FakeAnswerCuts)
    observer: RecordingObserver = field(default_factory=RecordingObserver)
    admission: Admission = field(default_factory=Admission)
    blocks: Sequence[DynamicBlockSource] = ()
    documents: NotingReader = field(default_factory=NotingReader)
    files: FakeAttachedFiles | None = None
    agent_files: FakeAgentFiles = field(default_factory=FakeAgentFiles)
    rates: TurnRates = field(default_factory=unlimited_rates)
    replica: str = "replica-1"
    checkpoint_seconds: float = 0.001
    finish_pauses_seconds: Sequence[float] = (0.001,)
    drain_seconds: float = 5.0
    system_prompt: str = ""
    turns_class: Callable[[StoreState], TurnStore] = FakeTurnStore
    waiting_class: Callable[[StoreState], WaitingTurnStore] = FakeWaitingTurnStore
    look_seconds: float = 0.01
    conversations_class: Callable[[StoreState], ConversationStore] = FakeConversationStore

    lease_seconds: float | None = None
    late_seconds: float = 0.02
    opening_seconds: float = 10.0
    rights_seconds: float = RIGHTS_SECONDS
    strict_requests: bool = False
    keeps_context: bool = True

    def __post_init__(self) -> None:
        self.clock = self.state.clock
        terms = LeaseTerms(seconds=self.lease_seconds) if self.lease_seconds is not None else None
        self.turns = self.turns_class(self.state)
        self.conversations = self.conversations_class(self.state)
        self.descriptions = SafeDescriptions(self.knowledge, self.knowledge, self.observer)
        self.labelled = LabelAccess(
            self.knowledge, partial(open_agent_files, self.agents), self.conversations.labels_of_turns
        )
        self.ports = TurnPorts(
            stored=StoredTurns(
                *(self.conversations, self.turns, self.waiting_class(self.state)),
                withheld=WithheldText(self.conversations, self.labelled),
                lease=TurnLease(self.replica, terms),
            ),
            chat_shell=self.chat_shell,
            events=self.events,
            signals=self.signals,
            clock=self.clock,
            observer=self.observer,
            outgoing=OutgoingCheck(self.knowledge, self.knowledge, self.cuts, self.clock, SECRET),
            background=self.supervisor or make_supervisor(self.failures),
        )
        runner = RunTurns(self.ports, self.checkpoint_seconds, self.finish_pauses_seconds)
        self.registry = TurnRegistry(runner, self.drain_seconds)
        self.services = self._services()
        self.recovery = Recovery(self.ports, RecoverTurn(self.ports, SECRET), self.registry, self.admission)

    def _services(self) -> TurnServices:
        policy = TurnPolicy(
            time_zone="Europe/Berlin",
            timeout=timedelta(seconds=600),
            max_knowledge_calls=10,
            replica=self.replica,
            secret=SECRET,
            system_prompt=self.system_prompt,
            keeps_context=self.keeps_context,
        )
        context = ContextSources(self.knowledge, self.labelled, self.descriptions.show, self.blocks, self.observer)
        models = ModelNames(ModelCatalogue(self.chat_shell, self.clock), AgentPresets(self.agents))
        files, projects = InputFiles(self.documents, self.files), ProjectFiles(self.agent_files)
        self.prepare = turn_preparation(self.ports, context, models, files, projects, policy)
        withheld = self.ports.stored.withheld
        access = ConversationAccess(self.conversations, self.turns)
        self.read_prompts = ReadPrompts(self.turns, self.conversations, access, withheld, AgentPresets(self.agents))
        self.caller_conversations = CallerConversations(self.conversations, self.clock, SECRET)
        self.members = ConversationMembers(self.conversations, access)
        start, lanes = self.starts_of(self.prepare)
        return TurnServices(
            start_one=start,
            start_lanes=lanes,
            waiting=BeginWaiting(self.ports, start, self.registry, self.admission, self.look_seconds),
            count=CountInput(self.prepare),
            compact=CompactInput(
                *(self.ports, self.prepare, self.registry, self.admission, self.rates), secret=policy.secret
            ),
            follow=FollowEvents(self.turns, self.events, self.late_seconds, self.opening_seconds),
            responses=Responses(self.ports, access),
            models=models,
            registry=self.registry,
            withheld=withheld,
            cited=CitedDocuments(self.knowledge),
            rights=RightsOfReaders(access, withheld, self.rights_seconds),
            rates=self.rates,
            unstored=UnstoredTurns(self.events, self.signals, self.clock, policy.secret),
            on_disconnect=policy.on_disconnect,
            strict_requests=self.strict_requests,
        )

    def starts_of(self, prepare: PrepareTurn) -> tuple[StartTurn, StartLanes]:
        """Build what starts turns that are prepared so."""
        start = StartTurn(
            *(prepare, self.turns.begin, self.registry, self.admission, self.rates),
            queue=QueueTurn(self.ports, prepare, timedelta(seconds=600)),
        )
        lanes = StartLanes(prepare, self.turns, self.conversations, self.registry, self.admission, self.rates)
        return start, lanes

    @property
    def scripted(self) -> ScriptedChatShell:
        """The chat_shell, which plays scripts."""
        assert isinstance(self.chat_shell, ScriptedChatShell)
        return self.chat_shell

    @property
    def sent(self) -> list[ExecutionRequest]:
        """What chat_shell was asked."""
        return self.scripted.requests

    async def start(self, caller: Caller = ADA, **fields: Any) -> RunningTurn:
        """Start a turn as a caller would."""
        begun = await self._start(caller, fields)
        assert isinstance(begun, RunningTurn)
        return begun

    async def queue(self, caller: Caller = ADA, how: str = "queue", **fields: Any) -> StoredResponse:
        """Ask for a turn that has to wait."""
        begun = await self._start(caller, {"if_running": how, **fields})
        assert isinstance(begun, AcknowledgedTurn)
        return begun.response

    async def _start(self, caller: Caller, fields: dict[str, Any]) -> RunningTurn | AcknowledgedTurn:
        request = parse_turn_request(orjson.dumps({"input": "Hi", **fields}))
        return await self.services.start(caller, request, "req_1")

    async def ask(self, caller: Caller = ADA, **fields: Any) -> StoredResponse:
        """Run a turn to its end."""
        running = await self.start(caller, **fields)
        ended = await running.wait_until_ended()
        await self.registry.release(running)
        return ended

    async def count(self, caller: Caller = ADA, **fields: Any) -> int:
        """Count the tokens that a turn would send."""
        request = parse_turn_request(orjson.dumps({"input": "Hi", **fields}))
        return await self.services.count(caller, request, "req_1")

    async def all_events(self, response: StoredResponse, after: int = -1) -> list[dict[str, Any]]:
        """Follow a response to its end."""
        found: list[dict[str, Any]] = []
        async for batch in self.services.follow(response, after, with_results=True):
            found.extend(orjson.loads(event.body) for event in batch)
        return found

    def log_of(self, conversation_id: str) -> list[Entry]:
        """Return the entries of a conversation."""
        return self.state.entries[conversation_id]


class _NoTimer:
    """Never fires: logs are kept until they are dropped."""

    def cancel(self) -> None:
        """Stop nothing."""


@asynccontextmanager
async def open_house(*scripts: Sequence[Any], **fields: Any) -> AsyncGenerator[TurnHouse, None]:
    """Open a house whose turns run; leaving waits for them."""
    house = TurnHouse(chat_shell=ScriptedChatShell(*scripts), **fields)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        yield house
