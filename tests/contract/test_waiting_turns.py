"""One contract for every `WaitingTurnStore`, and for what the other stores make of turns that wait."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from backend.conversations.domain.responses import NewTurn, ResponseStatus, StoredResponse
from backend.conversations.domain.waiting_turns import IfRunning, WaitingTurn
from backend.knowledge.domain.labels import Label
from shared.errors import NoLongerWaiting, NotFound, TooManyRequests, TurnRunning
from shared.models.execution import AccessMode
from tests.contract.store_cases import (
    HOLD,
    KINDS,
    T0,
    Stores,
    make_conversation,
    make_end,
    make_entry,
    make_exchange,
    make_item,
    make_response,
    make_turn,
    open_stores,
)

MOST = 4


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened


def make_waiting(response_id: str, how: IfRunning = IfRunning.QUEUE) -> WaitingTurn:
    response = make_response(
        response_id,
        status=ResponseStatus.QUEUED,
        last_event=-1,
        replica="",
        label=(Label("kb_a", AccessMode.FULL),),
        body={"id": response_id, "output": [], "é": "\x00"},
    )
    return WaitingTurn(response=response, if_running=how, asked="{}", expires_at=T0 + timedelta(hours=2))


def waited(length: int, response_id: str) -> NewTurn:
    return make_turn(length, response_id)._replace(has_waited=True)


def ended(waiting: WaitingTurn) -> StoredResponse:
    return waiting.response.model_copy(update={"status": ResponseStatus.CANCELLED, "last_event": 1})


async def test_a_waiting_turn_is_found_with_its_response(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    waiting = make_waiting("resp_b")
    assert await stores.waiting.add(waiting, MOST) == "resp_a"
    assert await stores.waiting.find("resp_b") == waiting
    assert await stores.turns.find("resp_b") == waiting.response
    assert (await stores.waiting.find("resp_a"), await stores.turns.find("resp_c")) == (None, None)


async def test_a_conversation_that_is_not_there_takes_no_turn(stores: Stores) -> None:
    with pytest.raises(NotFound):
        await stores.waiting.add(make_waiting("resp_b"), MOST)
    assert await stores.turns.find("resp_b") is None


async def test_they_begin_in_their_order_and_those_that_come_next_before_the_others(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    for name, how in (("b", "queue"), ("c", "cancel"), ("d", "queue"), ("e", "cancel")):
        await stores.waiting.add(make_waiting(f"resp_{name}", IfRunning(how)), MOST)
    assert await stores.waiting.startable(9) == ()
    await stores.turns.finish(make_end(1))
    length, order = 2, list[str]()
    while startable := await stores.waiting.startable(9):
        (response_id,) = startable
        order.append(response_id[-1])
        await stores.turns.begin(waited(length, response_id))
        assert await stores.waiting.startable(9) == ()
        assert await stores.turns.finish(make_end(length + 1, response_id))
        length += 2
    assert "".join(order) == "cebd"


async def test_one_begins_only_where_it_comes_next_and_once(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    for name in ("b", "c"):
        await stores.waiting.add(make_waiting(f"resp_{name}"), MOST)
    with pytest.raises(TurnRunning):
        await stores.turns.begin(waited(1, "resp_b"))
    await stores.turns.finish(make_end(1))
    with pytest.raises(TurnRunning):
        await stores.turns.begin(waited(2, "resp_c"))
    attempts = [stores.turns.begin(waited(2, "resp_b")) for _ in range(3)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(isinstance(each, TurnRunning) for each in outcomes) == [False, True, True]
    found = await stores.turns.find("resp_b")
    assert found is not None
    assert (found.status, await stores.waiting.find("resp_b")) == (ResponseStatus.IN_PROGRESS, None)
    assert len(await stores.conversations.log("conv_a")) == 3


async def test_whatever_did_not_wait_comes_behind_those_that_do(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.waiting.add(make_waiting("resp_b"), MOST)
    await stores.turns.finish(make_end(1))
    with pytest.raises(TurnRunning):
        await stores.turns.begin(make_turn(2, "resp_c"))
    with pytest.raises(TurnRunning):
        await stores.conversations.append("conv_a", 2, (make_entry(2),), (make_item(2, None),))
    with pytest.raises(TurnRunning):
        await stores.conversations.delete("conv_a")
    assert await stores.waiting.withdraw(ended(make_waiting("resp_b")))
    await stores.turns.begin(make_turn(2, "resp_c"))


async def test_the_ids_of_a_turn_that_waits_are_read_without_its_body(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    waiting = make_waiting("resp_b")
    await stores.waiting.add(waiting, MOST)
    empty = waiting.response.model_copy(update={"body": {}, "input_items": ()})
    assert await stores.waiting.remains("resp_b") == empty
    assert await stores.waiting.remains("resp_c") is None


async def test_no_more_wait_than_may(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    for number in range(MOST):
        await stores.waiting.add(make_waiting(f"resp_{number}"), MOST)
    for how in IfRunning:
        with pytest.raises(TooManyRequests):
            await stores.waiting.add(make_waiting("resp_z", how), MOST)
    await stores.waiting.withdraw(ended(make_waiting("resp_0")))
    await stores.waiting.add(make_waiting("resp_z"), MOST)


async def test_the_places_of_one_conversation_are_given_once(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    adding = [stores.waiting.add(make_waiting(f"resp_{number}"), MOST) for number in range(2 * MOST)]
    outcomes = await asyncio.gather(*adding, return_exceptions=True)
    assert sorted(isinstance(each, TooManyRequests) for each in outcomes) == [False] * MOST + [True] * MOST


async def test_a_withdrawn_turn_has_ended_and_never_begins(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    waiting = make_waiting("resp_b")
    await stores.waiting.add(waiting, MOST)
    assert await stores.waiting.withdraw(ended(waiting))
    assert not await stores.waiting.withdraw(ended(waiting))
    assert await stores.turns.find("resp_b") == ended(waiting)
    await stores.turns.finish(make_end(1))
    with pytest.raises(TurnRunning):
        await stores.turns.begin(waited(2, "resp_b"))
    await stores.turns.delete("resp_b")
    assert await stores.turns.find("resp_b") is None


async def test_one_that_has_begun_cannot_be_withdrawn(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.waiting.add(make_waiting("resp_b"), MOST)
    await stores.turns.finish(make_end(1))
    await stores.turns.begin(waited(2, "resp_b"))
    assert not await stores.waiting.withdraw(ended(make_waiting("resp_b")))


async def test_only_turns_that_hold_a_conversation_are_to_be_cancelled(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.waiting.add(make_waiting("resp_b"), MOST)
    assert list(await stores.waiting.to_be_cancelled()) == []
    for name in ("c", "d"):
        await stores.waiting.add(make_waiting(f"resp_{name}", IfRunning.CANCEL), MOST)
    assert list(await stores.waiting.to_be_cancelled()) == ["resp_a"]
    await stores.turns.finish(make_end(1))
    assert list(await stores.waiting.to_be_cancelled()) == []


async def test_conversations_do_not_wait_for_each_other(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.conversations.create(make_conversation("conv_b"), (), ())
    waiting = make_waiting("resp_b")
    other = waiting.response.model_copy(update={"id": "resp_c", "conversation_id": "conv_b"})
    await stores.waiting.add(waiting, MOST)
    assert await stores.waiting.add(waiting.model_copy(update={"response": other}), MOST) is None
    assert await stores.waiting.startable(9) == ("resp_c",)
    assert await stores.waiting.startable(0) == ()


async def test_messages_enter_the_turn_of_their_user_with_the_entries_that_hold_them(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    first, second = make_waiting("resp_b", IfRunning.STEER), make_waiting("resp_c", IfRunning.STEER)
    foreign = make_waiting("resp_d", IfRunning.STEER)
    others = foreign.response.model_copy(update={"user_id": "bob"})
    foreign = foreign.model_copy(update={"response": others})
    for waiting in (make_waiting("resp_e"), first, foreign, second):
        await stores.waiting.add(waiting, MOST)
    running = make_response()
    assert list(await stores.waiting.to_be_steered()) == ["resp_a"]
    assert await stores.waiting.find_steering(running) == (first, second)
    exchange = make_exchange(1, 2, output=({"type": "message"},), steered_by=("resp_b", "resp_c"))
    for _ in range(2):
        await stores.turns.append(HOLD, 1, exchange)
    entered = [(each.response_id, each.output_count) for each in await stores.waiting.find_entered("resp_a")]
    assert entered == [("resp_a", 1), ("resp_a", 1)]
    assert (await stores.waiting.find_entered("resp_a"))[0].items == first.response.input_items
    assert (await stores.waiting.find_steering(running), list(await stores.waiting.to_be_steered())) == ((), [])
    found = await stores.turns.find("resp_b")
    assert found is not None
    assert found.id == "resp_a"
    assert not await stores.waiting.withdraw(ended(first))
    await stores.turns.finish(make_end(3))
    assert await stores.waiting.startable(9) == ("resp_d",)
    assert (await stores.waiting.find("resp_b"), await stores.waiting.find_steering(running)) == (None, ())


async def test_what_was_withdrawn_keeps_its_entries_from_being_written(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    for name in ("b", "c"):
        await stores.waiting.add(make_waiting(f"resp_{name}", IfRunning.STEER), MOST)
    await stores.waiting.withdraw(ended(make_waiting("resp_c")))
    with pytest.raises(NoLongerWaiting):
        await stores.turns.append(HOLD, 1, make_exchange(1, 2, steered_by=("resp_b", "resp_c")))
    assert len(await stores.conversations.log("conv_a")) == 1
    assert [each.response.id for each in await stores.waiting.find_steering(make_response())] == ["resp_b"]


async def test_with_the_response_that_they_entered_their_ids_are_forgotten(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.waiting.add(make_waiting("resp_b", IfRunning.STEER), MOST)
    await stores.turns.append(HOLD, 1, make_exchange(1, steered_by=("resp_b",)))
    await stores.turns.finish(make_end(2))
    await stores.turns.delete("resp_a")
    assert await stores.turns.find("resp_b") is None
