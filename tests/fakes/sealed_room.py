"""A sealed room with fakes around it: a backend, a secondary model and a gate that do as they are told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any

from chat_shell.sealed.backend_wire import OutcomeReceipt
from chat_shell.sealed.gate.codebook import read_shipped
from chat_shell.sealed.outcome import Outcome, SealedSearch, SealedSearchResult
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.room import LatencyPadding, RoomTimes, SealedRoom
from chat_shell.sealed.summary_prompt import Messages
from chat_shell.sealed.summary_writer import CanaryCircuit, SummaryWriter
from chat_shell.sealed.verdicts import Blocked, Judge, Released, Verdict
from shared.disclosure.frame import BaseRules
from shared.disclosure.languages import Language
from shared.models.knowledge_api import WeighedAnswer
from shared.models.safe_summary import Failure, SummaryVersions
from shared.models.values import JsonObject
from tests.fakes.clock import FakeClock
from tests.fakes.safe_summaries import released

SECRET = "The reserve holds 48,200 litres"
CANARY = "storedcanarybdf"


@dataclass(frozen=True)
class SummaryStarted:
    """There is evidence, and the secondary model is about to be asked."""

    knowledge_base_ids: tuple[str, ...]
    query_characters: int
    chunks_found: int
    chunks_sent: int


@dataclass(frozen=True)
class OutcomeAnswered:
    """The backend's answer to an outcome; `status` is None where none came.

    `changed` says which change of access or knowledge base forbids the release after all.
    """

    search_id: str | None
    status: int | None
    recorded: bool
    release: bool
    changed: Failure | None


@dataclass(frozen=True)
class SecondaryAsked:
    """A request to the secondary model, each chunk in it replaced by its knowledge base and its length."""

    model: str
    messages: tuple[Mapping[str, str], ...]
    body_bytes: int


@dataclass(frozen=True)
class SecondaryAnswered:
    """A reply's size, and what became of it: `answer`, `refuse`, `blocked`, or the code of a failure."""

    model: str
    reply_bytes: int
    decision: str


@dataclass(frozen=True)
class OutcomeSent:
    """What an observer was told before recording."""

    outcome: Outcome


@dataclass(frozen=True)
class SummaryCompleted:
    """What an observer was told at the end."""

    outcome: Outcome


Seen = SummaryStarted | SummaryCompleted | OutcomeSent | OutcomeAnswered | SecondaryAsked | SecondaryAnswered


def protected_chunk(text: str = SECRET, chunk_id: str = "c_1", name: str = "reserve-plan.md") -> ProtectedChunk:
    """A chunk of kb_r, under the heading Reserves."""

    def wrapped(inside: str) -> ProtectedText:
        return ProtectedText(inside, "kb_r", chunk_id)

    return ProtectedChunk("kb_r", chunk_id, 0, wrapped(name), (wrapped("Reserves"),), wrapped(text), wrapped(CANARY))


def sealed_search(**changes: Any) -> SealedSearch:
    """A useful question, ten minutes before the turn's deadline."""
    asked = SealedSearch(
        ticket="ticket_1",
        request_id="req_1",
        query="weaknesses of the reserve",
        last_message="Where are we weak?",
        user_words="Hello.\nWhere are we weak?",
        knowledge_base_ids=("kb_r",),
        deadline=FakeClock().now() + timedelta(seconds=600),
    )
    return replace(asked, **changes)


@dataclass
class FakeSealedBackend:
    """Finds one chunk and records everything; answers may be replaced, by errors too."""

    found: SealedSearchResult | Failure | BaseException = field(
        default_factory=lambda: SealedSearchResult("s_1", chunks=(protected_chunk(),))
    )
    recorded: OutcomeReceipt | BaseException = field(
        default_factory=lambda: OutcomeReceipt(200, recorded=True, release=True)
    )
    hangs: bool = False
    searches: list[tuple[SealedSearch, SummaryVersions]] = field(
        default_factory=list[tuple[SealedSearch, SummaryVersions]]
    )
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    weighings: Sequence[WeighedAnswer | Failure] = (WeighedAnswer(retold=(), facts=()),)
    weighed: list[Released] = field(default_factory=list[Released])

    async def search(self, search: SealedSearch, versions: SummaryVersions) -> SealedSearchResult | Failure:
        self.searches.append((search, versions))
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found

    async def weigh(self, search: SealedSearch, search_id: str, released: Released) -> WeighedAnswer | Failure:
        self.weighed.append(released)
        return self.weighings[min(len(self.weighed), len(self.weighings)) - 1]

    async def record(self, search: SealedSearch, versions: SummaryVersions, outcome: Outcome) -> OutcomeReceipt:
        self.outcomes.append(outcome)
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.recorded, BaseException):
            raise self.recorded
        return self.recorded


@dataclass
class FakeSecondary:
    """Says one reply after the other, the last one over and over; None hangs."""

    replies: Sequence[bytes | Failure | BaseException | None] = (b"good",)
    name: str = "second"
    prompts: list[Messages] = field(default_factory=list[Messages])
    schemas: list[JsonObject | None] = field(default_factory=list[JsonObject | None])
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes | Failure:
        self.schemas.append(schema)
        said = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        self.prompts.append(messages)
        self.asked.set()
        if said is None:
            await asyncio.Event().wait()
        if isinstance(said, BaseException):
            raise said
        return said or b""


Statement = tuple[Sequence[ProtectedChunk], str, Sequence[str], Sequence[ProtectedChunk], Language | None, BaseRules]


@dataclass
class FakeGate:
    """Releases `good`; any other reply has its verdict in `verdicts`, an error too."""

    verdicts: dict[bytes, Verdict | BaseException] = field(default_factory=dict[bytes, Verdict | BaseException])
    failure: BaseException | None = None
    cases: list[Statement] = field(default_factory=list[Statement])
    version: str = "7"

    def prepare(
        self,
        chunks: Sequence[ProtectedChunk],
        user_words: str,
        canaries: Sequence[str],
        siblings: Sequence[ProtectedChunk],
        language: Language | None,
        rules: BaseRules,
    ) -> Judge:
        if self.failure is not None:
            raise self.failure
        self.cases.append((chunks, user_words, canaries, siblings, language, rules))
        return self._judge

    def _judge(self, reply: bytes) -> Verdict:
        verdict = self.verdicts.get(reply, released() if reply == b"good" else Blocked(()))
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict


@dataclass
class RecordingRoomObserver:
    """Keeps what it is told."""

    seen: list[Seen] = field(default_factory=list[Seen])

    def summary_started(self, base_ids: tuple[str, ...], *, query_characters: int, found: int, sent: int) -> None:
        self.seen.append(SummaryStarted(base_ids, query_characters, found, sent))

    def summary_completed(self, outcome: Outcome) -> None:
        self.seen.append(SummaryCompleted(outcome))

    def outcome_sent(self, outcome: Outcome) -> None:
        self.seen.append(OutcomeSent(outcome))

    def outcome_answered(self, search_id: str | None, receipt: OutcomeReceipt, changed: Failure | None) -> None:
        self.seen.append(OutcomeAnswered(search_id, receipt.status, receipt.recorded, receipt.release, changed))

    def secondary_asked(self, model: str, messages: Messages, body_bytes: int) -> None:
        self.seen.append(SecondaryAsked(model, messages, body_bytes))

    def secondary_answered(self, model: str, reply_bytes: int, decision: str) -> None:
        self.seen.append(SecondaryAnswered(model, reply_bytes, decision))

    @property
    def completed(self) -> Outcome:
        """How the newest search ended."""
        return next(one.outcome for one in reversed(self.seen) if isinstance(one, SummaryCompleted))


@dataclass
class RoomStage:
    """A room and all that it stands on."""

    backend: FakeSealedBackend = field(default_factory=FakeSealedBackend)
    model: FakeSecondary = field(default_factory=FakeSecondary)
    gate: FakeGate = field(default_factory=FakeGate)
    canary_limit: int = 3
    summary_seconds: float = 20
    outcome_seconds: float = 5
    clock: FakeClock = field(default_factory=FakeClock)
    observer: RecordingRoomObserver = field(default_factory=RecordingRoomObserver)
    waits: list[float] = field(default_factory=list[float])
    wait: Callable[[float], Awaitable[None]] | None = None
    _room: SealedRoom | None = None

    @property
    def room(self) -> SealedRoom:
        """The room, made at first use."""
        if self._room is None:
            numbers = count(1)
            circuit = CanaryCircuit(self.canary_limit, self.clock.now)
            book = read_shipped()
            writer = SummaryWriter(self.model, self.gate, circuit, self.observer, lambda: f"token{next(numbers)}", book)
            padding = LatencyPadding(self.wait or self._wait)
            times = RoomTimes(self.summary_seconds, self.outcome_seconds)
            self._room = SealedRoom(self.backend, writer, self.observer, self.clock.now, padding, times)
        return self._room

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.advance(seconds)

    async def ask(self, **changes: Any) -> Released | None:
        """Ask the room."""
        return await self.room.summarise(sealed_search(**changes))
