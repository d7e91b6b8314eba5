"""Checkpoints of many turns are stored together, and one that is refused holds up no other."""

from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from backend.conversations.domain.responses import Checkpoint, Hold
from backend.turns.services.run.checkpoints import CHECKPOINTS_AT_ONCE, CheckpointWriter
from shared.errors import InvalidRequest, Unavailable
from tests.fakes.store_state import StoreState
from tests.fakes.store_turns import FakeTurnStore
from tests.fakes.supervision import RecordingFailures, make_supervisor


class Store(FakeTurnStore):
    """Notes what it is given, and refuses what holds the turn `bad`; the turn `taken` is in other hands."""

    def __init__(self) -> None:
        super().__init__(StoreState())
        self.stored: list[list[str]] = []
        self.is_away = False

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
        if self.is_away:
            raise Unavailable("The database is not available.")
        names = [checkpoint.hold.response_id for checkpoint in checkpoints]
        if "bad" in names:
            raise InvalidRequest("The text holds a character that cannot be stored.")
        self.stored.append([name for name in names if name != "taken"])
        return frozenset({"taken"}.intersection(names))


class Turn:
    """A running turn with one new output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.is_stored = False
        self.is_taken = False

    def new_checkpoint(self) -> Checkpoint | None:
        return None if self.is_stored else Checkpoint(make_hold(self._name), (), 1)

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        self.is_stored = True

    def note_taken(self) -> None:
        self.is_taken = True


def make_hold(name: str) -> Hold:
    return Hold(response_id=name, conversation_id=f"conv_{name}", fence=0)


class Office:
    """Checkpoints of turns with these names."""

    def __init__(self, stack: ExitStack, names: Sequence[str]) -> None:
        self.store, self.failures = Store(), RecordingFailures()
        self.checkpoints = CheckpointWriter(self.store, make_supervisor(self.failures))
        self.turns = [Turn(name) for name in names]
        for turn in self.turns:
            stack.enter_context(self.checkpoints.following(turn))


async def test_all_turns_are_stored_in_one_transaction_and_once() -> None:
    with ExitStack() as stack:
        office = Office(stack, ["a", "b", "c"])
        await office.checkpoints.store_due()
        await office.checkpoints.store_due()
        assert office.store.stored == [["a", "b", "c"]]
    office.turns[0].is_stored = False
    await office.checkpoints.store_due()
    assert len(office.store.stored) == 1  # nobody follows a turn that has ended


async def test_transactions_are_bounded() -> None:
    with ExitStack() as stack:
        office = Office(stack, [str(number) for number in range(CHECKPOINTS_AT_ONCE + 1)])
        await office.checkpoints.store_due()
    assert [len(names) for names in office.store.stored] == [CHECKPOINTS_AT_ONCE, 1]


async def test_one_that_is_refused_holds_up_no_other() -> None:
    with ExitStack() as stack:
        office = Office(stack, ["a", "bad", "b"])
        await office.checkpoints.store_due()
    assert office.store.stored == [["a"], ["b"]]
    assert [type(error) for _, error in office.failures.failures] == [InvalidRequest]


async def test_a_turn_in_other_hands_learns_it_and_holds_up_no_other() -> None:
    with ExitStack() as stack:
        office = Office(stack, ["a", "taken", "b"])
        await office.checkpoints.store_due()
    assert office.store.stored == [["a", "b"]]
    assert [(turn.is_stored, turn.is_taken) for turn in office.turns] == [(True, False), (False, True), (True, False)]
    assert not office.failures.failures


async def test_what_an_outage_held_up_is_stored_after_it() -> None:
    with ExitStack() as stack:
        office = Office(stack, ["a", "b"])
        office.store.is_away = True
        with pytest.raises(Unavailable):
            await office.checkpoints.store_due()
        office.store.is_away = False
        await office.checkpoints.store_due()
    assert office.store.stored == [["a", "b"]]
