"""What clients saw in a run, what is stored after it, and what was counted: plain values."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

TERMINAL = frozenset({"completed", "failed", "incomplete", "cancelled"})
LAST_EVENTS = frozenset({"response.completed", "response.failed", "response.incomplete"})
DELTA = "response.output_text.delta"
STORE_ERRORS = frozenset({"Unavailable", "EventsLost"})
ABSENT = ""
"""What stands at an address that answers 404."""


class SeenEvent(NamedTuple):
    """An event of a stream.

    `digest` is of all its bytes, `text` what a delta adds or the type of an error, `status` what a last event says.
    """

    number: int
    type: str
    digest: int
    text: str = ""
    status: str = ""


@dataclass
class Reading:
    """What one connection showed of a turn's events, and when, by the clock that only goes forward."""

    replica: str
    after: int | None = None
    events: list[SeenEvent] = field(default_factory=list[SeenEvent])
    times: list[float] = field(default_factory=list[float])

    @property
    def last_event(self) -> SeenEvent | None:
        """The event that ended the turn, if it was seen."""
        return self.events[-1] if self.events and self.events[-1].type in LAST_EVENTS else None

    @property
    def is_broken_off(self) -> bool:
        """Whether an outage of the store of events ended the connection, and not the turn."""
        return bool(self.events) and self.events[-1].type == "error" and self.events[-1].text in STORE_ERRORS


@dataclass
class Turn:
    """One turn as its client saw it.

    `question` is the key of the turn whose user message this one answers, its own when empty; `expected` is what the
    model says in it, None where something of ours may change it; `calls` counts the tool calls that its model makes;
    `answers` are the response ids of all successful answers to one Idempotency-Key.
    """

    key: str
    kind: str
    conversation: str = ""
    expected: str | None = None
    calls: int = 0
    response_id: str = ""
    plain: tuple[str, str] | None = None
    readings: list[Reading] = field(default_factory=list[Reading])
    answers: list[str] = field(default_factory=list[str])
    question: str = ""
    begun_at: float = field(default_factory=time.monotonic)
    answered_at: float = 0.0

    @property
    def is_ended(self) -> bool:
        """Whether the client has seen its end."""
        return self.plain is not None or any(reading.last_event for reading in self.readings)

    def was_touched_in(self, begins: float, ends: float) -> bool:
        """Whether it may have run, or been acknowledged, within an interval; one without an end may run for long."""
        last = max([self.answered_at, *(at for reading in self.readings for at in reading.times)])
        return self.begun_at <= ends and (last >= begins or not self.is_ended)

    def newest_number(self) -> int:
        """Return the largest number seen, -1 without any; that of an error may be of its connection alone."""
        events = (event for reading in self.readings for event in reading.events)
        return max((event.number for event in events if event.type != "error"), default=-1)


@dataclass(frozen=True)
class Stored:
    """A response as it is stored after the run, and the replay of its events."""

    status: str
    text: str
    replay: tuple[SeenEvent, ...]


@dataclass
class Sending:
    """One request that writes a value."""

    is_acknowledged: bool = False


@dataclass
class Register:
    """A place that a client wrote to: the last value acknowledged, and all that were sent without an answer."""

    path: str
    acknowledged: str | None = None
    unanswered: set[str] = field(default_factory=set[str])
    acknowledged_at: float = 0.0

    @contextmanager
    def sending(self, value: str) -> Generator[Sending]:
        """Note a value that is sent; without an acknowledgement it may be written at any time, by a frozen process."""
        is_certain, sent = value not in self.unanswered, Sending()
        self.unanswered.add(value)
        yield sent
        if sent.is_acknowledged:
            self.acknowledge(value)
            if is_certain:
                self.unanswered.remove(value)

    def acknowledge(self, value: str) -> None:
        """Note a value that the server has just said to be stored."""
        self.acknowledged, self.acknowledged_at = value, time.monotonic()

    def allows(self, found: str) -> bool:
        """Say whether a value may stand there."""
        return self.acknowledged is None or found == self.acknowledged or found in self.unanswered


class SentPrompt(NamedTuple):
    """A request at the model: whose question it ends with, its bytes to the last message, the tool results in it."""

    turn: str
    cache_key: str
    opening: bytes
    results: int = 0


class LogShare(NamedTuple):
    """What a turn has in its conversation's log; later requests skip a void turn."""

    is_void: bool
    results: int


class Death(NamedTuple):
    """A process that ended without being told to; `excuse` says why it may have, in words."""

    name: str
    how: str
    log: str
    excuse: str = ""


@dataclass(frozen=True)
class Resources:
    """What a running cluster holds, by process and by store."""

    memory_mb: dict[str, float]
    open_files: dict[str, int]
    connections: int
    keys_without_expiry: int


@dataclass(frozen=True)
class Violation:
    """A promise that a run broke, with the ids to search the logs for."""

    check: str
    ids: tuple[str, ...]
    told: str


@dataclass
class Evidence:
    """All that a run left behind, for the checks."""

    turns: list[Turn] = field(default_factory=list[Turn])
    stored: dict[str, Stored] = field(default_factory=dict[str, Stored])
    unfinished: tuple[str, ...] = ()
    tool_runs: dict[str, int] = field(default_factory=dict[str, int])
    log: dict[str, LogShare] = field(default_factory=dict[str, LogShare])
    prompts: list[SentPrompt] = field(default_factory=list[SentPrompt])
    drift: tuple[str, ...] = ()
    registers: list[Register] = field(default_factory=list[Register])
    found: dict[str, str] = field(default_factory=dict[str, str])
    deaths: list[Death] = field(default_factory=list[Death])
    server_errors: list[str] = field(default_factory=list[str])
    hung: list[str] = field(default_factory=list[str])
    stuck: list[str] = field(default_factory=list[str])
    before: Resources | None = None
    after: Resources | None = None
