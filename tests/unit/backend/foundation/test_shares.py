"""What callers share: all of it, a part for each, and nothing lost."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.foundation.services.admission import Admission
from shared.errors import Draining, TooManyRequests, Unavailable
from shared.shares import MOST, Holder, SharedBudget
from tests.patience import PATIENCE_SECONDS

ANN, BOB, CIA = Holder("ann"), Holder("bob"), Holder("cia")


def test_nobody_takes_more_than_half_however_much_is_free() -> None:
    admission = Admission(max_turns=4)
    places = [admission.place(ANN), admission.place(ANN)]
    with pytest.raises(TooManyRequests) as refused:
        admission.place(ANN)
    assert refused.value.retry_after_seconds
    places += [admission.place(BOB), admission.place(BOB)]
    with pytest.raises(Unavailable):
        admission.place(CIA)
    places[0].release()
    places[0].release()
    admission.place(CIA)
    with pytest.raises(Unavailable):
        admission.place(CIA)


def test_a_service_key_leaves_room_for_others_and_shares_its_own_between_its_users() -> None:
    admission, service = Admission(max_turns=4), Holder("service", MOST)
    for user in (ANN, ANN, BOB):
        admission.place(user, service)
    with pytest.raises(TooManyRequests):
        admission.place(BOB, service)
    admission.place(CIA)


def test_the_only_place_can_be_taken() -> None:
    Admission(max_turns=1).place(ANN)


def test_what_is_not_kept_is_released_and_what_is_kept_is_released_once() -> None:
    budget = SharedBudget("room", 10)
    with budget.lease(ANN) as lease:
        lease.grow(3)
    assert budget.taken == 0
    with budget.lease(ANN) as lease:
        lease.grow(3)
        release = lease.keep()
    assert budget.taken == 3
    release()
    release()
    assert budget.taken == 0
    with pytest.raises(KeyError), budget.lease(ANN) as lease:
        lease.grow(5)
        lease.keep()
        raise KeyError
    assert budget.taken == 0


def test_a_holder_may_have_the_least_even_where_their_part_is_smaller() -> None:
    budget = SharedBudget("room", 10, least=8)
    budget.lease(ANN).grow(8)
    with pytest.raises(TooManyRequests):
        budget.lease(ANN).grow(1)


@given(st.lists(st.tuples(st.sampled_from([ANN, BOB, CIA]), st.integers(0, 12), st.booleans())))
def test_the_sum_is_never_exceeded_and_all_of_it_comes_back(steps: list[tuple[Holder, int, bool]]) -> None:
    budget, leases = SharedBudget("room", 20), [SharedBudget("none", 0).lease()]
    held = {holder.name: 0 for holder, _, _ in steps}
    for holder, amount, is_released in steps:
        lease = budget.lease(holder)
        try:
            lease.grow(amount)
        except (Unavailable, TooManyRequests):
            assert held[holder.name] + amount > 10 or sum(held.values()) + amount > 20
            continue
        if is_released:
            lease.release()
        else:
            leases.append(lease)
            held[holder.name] += amount
        assert budget.taken == sum(held.values()) <= 20
        assert max(held.values()) <= 10
    for lease in leases:
        lease.release()
    assert budget.taken == 0


async def test_who_waits_gets_the_next_place_before_callers_and_leaves_them_half() -> None:
    admission = Admission(max_turns=4)
    places = [admission.place(holder) for holder in (ANN, ANN, BOB, BOB)]
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        waiting = [group.create_task(admission.wait_for_place(CIA)) for _ in range(3)]
        left = group.create_task(admission.wait_for_place(CIA))
        await asyncio.sleep(0)
        assert admission.is_waited_for
        waiting[0].cancel()
        places[0].release()
        with pytest.raises(Unavailable):
            admission.place(ANN)
        first = await waiting[1]
        places[1].release()
        second = await waiting[2]
        places[2].release()
        admission.place(ANN)
        assert not left.done()
        first.release()
        await left
        second.release()
    assert not admission.is_waited_for


async def test_nobody_waits_for_a_place_of_a_process_that_shuts_down() -> None:
    admission = Admission(max_turns=1)
    admission.place(ANN)
    waiting = asyncio.ensure_future(admission.wait_for_place(BOB))
    await asyncio.sleep(0)
    admission.close()
    with pytest.raises(Draining):
        await waiting
    with pytest.raises(Draining):
        await admission.wait_for_place(BOB)
