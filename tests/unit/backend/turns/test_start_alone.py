"""Starting turns and owning their tasks, over doubles of what prepares and what runs them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from backend.conversations.domain.responses import NewTurn, ResponseStatus, StoredResponse
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.domain.queued_request import AcknowledgedTurn, QueuedRequest
from backend.turns.domain.turn import JoinedTurn, StartableTurn, Turn
from backend.turns.services.running_turn import RunningTurn, TurnSignals
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_registry import TurnRegistry
from shared.errors import TurnRunning
from tests.fakes.openai_house import ADA, TurnHouse
from tests.fakes.rates import unlimited_rates
from tests.patience import PATIENCE_SECONDS
from tests.unit.backend.turns.samples import request as asked_for


@dataclass
class Prepared:
    """Implements `TurnPreparation` with one turn; where another turn was faster, with one that branches off."""

    turn: StartableTurn
    branch: StartableTurn | None = None

    async def __call__(self, caller: Caller, request: TurnRequest, request_id: str) -> StartableTurn:
        return self.turn._replace(branch=self._branched if self.branch is not None else None)

    async def again(self, later: QueuedRequest, waited: StoredResponse) -> StartableTurn:
        return self.turn

    async def _branched(self) -> StartableTurn:
        assert self.branch is not None
        return self.branch


@dataclass
class Runner:
    """Implements `TurnRunner`; `defects` are the ids of the turns that break."""

    defects: list[str] = field(default_factory=list[str])
    dropped: list[str] = field(default_factory=list[str])
    reported: list[str] = field(default_factory=list[str])
    is_started: bool = False

    def start(self) -> None:
        self.is_started = True

    async def stop(self) -> None:
        self.is_started = False

    async def run(self, turn: Turn | JoinedTurn, signals: TurnSignals) -> StoredResponse | None:
        signals.opened.set()
        if turn.response.id in self.defects:
            raise RuntimeError("A defect.")
        return turn.response.model_copy(update={"status": ResponseStatus.COMPLETED})

    async def wait_until_ended_elsewhere(self, response_id: str) -> StoredResponse | None:
        return None

    async def drop_events(self, response_id: str) -> None:
        self.dropped.append(response_id)

    def report_defect(self, response_id: str, error: BaseException) -> None:
        self.reported.append(response_id)


class Office:
    """What starts turns, with what it has stored; the conversations of `taken` responses are held."""

    def __init__(self, prepared: Prepared, runner: Runner) -> None:
        self.stored: list[str] = []
        self.taken: set[str] = set()
        self.registry = TurnRegistry(runner, 5.0)
        self.start = StartTurn(prepared, self._store, self.registry, Admission(), unlimited_rates(), self._queued)
        self.queued: list[str | None] = []

    async def _store(self, rows: NewTurn) -> None:
        if rows.response.id in self.taken:
            raise TurnRunning("A turn is running on this conversation.")
        self.stored.append(rows.response.id)

    async def _queued(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> AcknowledgedTurn:
        self.queued.append(request.if_running)
        return AcknowledgedTurn(cast(StoredResponse, None), None)


@asynccontextmanager
async def office(prepared: Prepared, runner: Runner) -> AsyncGenerator[Office]:
    made = Office(prepared, runner)
    async with asyncio.timeout(PATIENCE_SECONDS), made.registry:
        yield made


async def two_turns() -> list[StartableTurn]:
    """Prepare two turns, of which the second is not stored."""
    house = TurnHouse()
    requests = [asked_for(input="Hi"), asked_for(input="Hi", store=False)]
    return [await house.prepare(ADA, each, "req_1") for each in requests]


async def test_a_prepared_turn_is_stored_and_then_run() -> None:
    turn, other = await two_turns()
    runner = Runner()
    async with office(Prepared(turn), runner) as made:
        assert runner.is_started
        running = await made.start(ADA, asked_for(), "req_1")
        assert isinstance(running, RunningTurn)
        assert (await running.wait_until_ended()).status == "completed"
        assert made.stored == [turn.turn.response.id]
        assert not made.registry.owns(turn.turn.response.id)
    assert not runner.is_started
    async with office(Prepared(other), runner) as made:
        running = await made.start(ADA, asked_for(), "req_1")
        assert isinstance(running, RunningTurn)
        await running.wait_until_ended()
        await made.registry.release(running)
        assert (made.stored, runner.dropped) == ([], [other.turn.response.id])


async def test_a_turn_that_may_branch_off_is_prepared_anew_and_any_other_waits_or_is_refused() -> None:
    first, second = await two_turns()
    branch = first._replace(turn=replace(second.turn, is_stored=True), rows=second.rows)
    for prepared, asked in ((Prepared(first, branch), {}), (Prepared(first), {"if_running": "queue"})):
        async with office(prepared, Runner()) as made:
            made.taken.add(first.turn.response.id)
            begun = await made.start(ADA, asked_for(conversation="conv_a", **asked), "req_1")
            branches = prepared.branch is not None
            assert isinstance(begun, RunningTurn if branches else AcknowledgedTurn)
            assert made.stored == [branch.turn.response.id] * branches
            assert len(made.queued) == (not branches)


async def test_a_defect_of_one_turn_is_reported_and_leaves_the_others_alone() -> None:
    broken, well = await two_turns()
    runner = Runner(defects=[broken.turn.response.id])
    async with office(Prepared(broken), runner) as made:
        running = [made.registry.start(each.turn) for each in (broken, well)]
        assert (await running[1].wait_until_ended()).status == "completed"
    assert runner.reported == [broken.turn.response.id]
