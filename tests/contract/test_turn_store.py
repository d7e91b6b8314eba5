"""One contract for every `TurnStore`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.responses import Checkpoint, FinishedTurn, ResponseStatus, SettingsDigest
from backend.knowledge.domain.tickets import SearchOptions
from backend.search.domain.filters import Comparison
from shared.errors import NotFound, TurnRunning, TurnTaken
from tests.contract.store_cases import (
    FIXED_TOOLS,
    HOLD,
    KINDS,
    Stores,
    made,
    make_call,
    make_conversation,
    make_end,
    make_entry,
    make_exchange,
    make_item,
    make_response,
    make_turn,
    open_stores,
)

TERMS = LeaseTerms(seconds=3600.0)
BEATS = 6
"""So many renewals last longer than a lease."""


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened


async def test_a_first_turn_makes_its_conversation(stores: Stores) -> None:
    turn = make_turn()
    await stores.turns.begin(turn)
    assert await stores.conversations.find("conv_a") == turn.conversation
    assert await stores.conversations.log("conv_a") == turn.entries
    assert await stores.conversations.all_items("conv_a", 9, 99) == turn.items
    assert await stores.turns.find("resp_a") == turn.response
    assert await stores.turns.find("resp_b") is None


async def test_a_conversation_keeps_the_tools_that_it_has_fixed(stores: Stores) -> None:
    turn = make_turn()
    conversation = turn.conversation.model_copy(update={"served": FIXED_TOOLS})
    await stores.turns.begin(turn._replace(conversation=conversation))
    assert await stores.conversations.find("conv_a") == conversation


async def test_a_conversation_keeps_the_filters_of_its_newest_turn(stores: Stores) -> None:
    turn = make_turn()
    filters = Comparison(type="eq", key="kind", value="tea")
    conversation = turn.conversation.model_copy(update={"search": SearchOptions(max_results=3, filters=filters)})
    await stores.turns.begin(turn._replace(conversation=conversation))
    assert await stores.conversations.find("conv_a") == conversation
    assert await stores.turns.finish(make_end(1))
    await stores.turns.begin(make_turn(2, "resp_b"))
    later = await stores.conversations.find("conv_a")
    assert later is not None
    assert later.search == make_conversation().search


async def test_the_end_of_a_turn_frees_the_conversation(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1)
    assert await stores.turns.finish(end)
    assert await stores.turns.find("resp_a") == end.response
    conversation = await stores.conversations.find("conv_a")
    assert conversation == make_conversation(log_length=2, latest_response_id="resp_a")
    assert await stores.conversations.log("conv_a") == (*make_turn().entries, *end.entries)
    assert await stores.conversations.all_items("conv_a", 9, 99) == (*make_turn().items, *end.items)


async def test_a_turn_ends_once(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    assert await stores.turns.finish(make_end(1))
    assert not await stores.turns.finish(make_end(2))
    assert not await stores.turns.finish(make_end(0, "resp_unknown"))
    assert len(await stores.conversations.log("conv_a")) == 2


async def test_an_end_without_words_frees_the_conversation_too(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1)._replace(entries=(), items=())
    assert await stores.turns.finish(end)
    conversation = await stores.conversations.find("conv_a")
    assert conversation == make_conversation(log_length=1, latest_response_id="resp_a")


async def test_the_next_turn_changes_what_it_may_and_no_more(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1))
    await stores.conversations.set_metadata("conv_a", {"late": "1"})
    turn = make_turn(2, "resp_b")
    changed = turn.conversation.model_copy(
        update={"instructions": "Be long.", "functions": (), "epoch": 1, "model": "model-b", "knowledge_base_ids": ()}
    )
    await stores.turns.begin(turn._replace(conversation=changed))
    found = await stores.conversations.find("conv_a")
    assert found == changed.model_copy(update={"metadata": {"late": "1"}})


async def test_a_second_turn_is_refused_while_one_runs_and_leaves_nothing(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    with pytest.raises(TurnRunning):
        await stores.turns.begin(make_turn(1, "resp_b"))
    assert await stores.turns.find("resp_b") is None
    assert len(await stores.conversations.log("conv_a")) == 1


async def test_a_turn_on_a_log_that_has_grown_is_refused(stores: Stores) -> None:
    await stores.conversations.create(make_conversation(log_length=1), (make_entry(0),), (make_item(0),))
    with pytest.raises(TurnRunning):
        await stores.turns.begin(make_turn(0, "resp_b"))


async def test_a_turn_on_no_conversation_is_not_found(stores: Stores) -> None:
    with pytest.raises(NotFound):
        await stores.turns.begin(make_turn(0, "resp_b"))


async def test_of_many_turns_at_once_one_wins(stores: Stores) -> None:
    await stores.conversations.create(make_conversation(), (), ())
    turns = [make_turn(0, f"resp_{place}") for place in range(20)]
    outcomes = await asyncio.gather(*(stores.turns.begin(turn) for turn in turns), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 19
    assert [entry.position for entry in await stores.conversations.log("conv_a")] == [0]


async def test_turns_that_begin_together_all_begin_or_none(stores: Stores) -> None:
    turns = [make_turn(None, f"resp_{name}", f"conv_{name}") for name in "abc"]
    await stores.turns.begin_together(turns)
    for turn in turns:
        assert await stores.turns.find(turn.response.id) == turn.response
        assert await stores.conversations.log(turn.conversation.id) == turn.entries
    with pytest.raises(TurnRunning):
        await stores.turns.begin_together([make_turn(None, "resp_d", "conv_d"), make_turn(1, "resp_e", "conv_b")])
    with pytest.raises(NotFound):
        await stores.turns.begin_together([make_turn(None, "resp_d", "conv_d"), make_turn(1, "resp_e", "conv_none")])
    assert await stores.turns.find("resp_d") is None
    assert await stores.conversations.find("conv_d") is None


async def test_of_turns_that_want_the_same_conversations_in_any_order_one_group_wins(stores: Stores) -> None:
    names = "ab"
    for name in names:
        await stores.conversations.create(make_conversation(f"conv_{name}"), (), ())
    groups = [
        [make_turn(0, f"resp_{place}_{name}", f"conv_{name}") for name in names[:: 1 if place % 2 else -1]]
        for place in range(20)
    ]
    outcomes = await asyncio.gather(*map(stores.turns.begin_together, groups), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 19


async def test_fifty_conversations_write_at_once(stores: Stores) -> None:
    async def converse(name: str) -> None:
        conversation_id = f"conv_{name}"
        for place in range(3):
            response_id = f"resp_{name}_{place}"
            length = 2 * place
            turn = make_turn(length or None, response_id, conversation_id)
            await stores.turns.begin(turn)
            assert not await stores.turns.checkpoint_many([Checkpoint(turn.response.hold, (), 3)])
            assert await stores.turns.finish(make_end(length + 1, response_id, conversation_id))

    await asyncio.gather(*(converse(str(number)) for number in range(50)))
    for number in range(50):
        log = await stores.conversations.log(f"conv_{number}")
        assert [entry.position for entry in log] == list(range(6))


async def test_a_running_turn_appends(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.append(HOLD, 1, make_exchange(1, 2))
    with pytest.raises(TurnRunning):
        await stores.turns.append(HOLD, 1, make_exchange(1))
    assert await stores.turns.finish(make_end(3))
    assert [entry.position for entry in await stores.conversations.log("conv_a")] == [0, 1, 2, 3]


async def test_an_exchange_that_is_sent_again_is_stored_once(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    for _ in range(2):
        await stores.turns.append(HOLD, 1, make_exchange(1, 2))
    assert await stores.turns.finish(make_end(3))
    assert [entry.position for entry in await stores.conversations.log("conv_a")] == [0, 1, 2, 3]


async def test_a_turn_that_lost_its_conversation_cannot_append(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1))
    with pytest.raises(TurnTaken):
        await stores.turns.append(HOLD, 2, make_exchange(2))


async def test_an_end_on_a_log_that_has_grown_is_refused_whole(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.append(HOLD, 1, make_exchange(1))
    with pytest.raises(TurnRunning):
        await stores.turns.finish(make_end(1))
    found = await stores.turns.find("resp_a")
    assert found is not None
    assert found.status is ResponseStatus.IN_PROGRESS


async def test_a_checkpoint_shows_in_the_output_until_the_end(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.checkpoint_many([Checkpoint(HOLD, ({"type": "message", "text": "so far"},), 4)])
    found = await stores.turns.find("resp_a")
    begun = make_turn().response
    so_far = {**begun.body, "output": [{"type": "message", "text": "so far"}]}
    assert found == begun.model_copy(update={"body": so_far, "last_event": 4})
    end = make_end(1)
    await stores.turns.finish(end)
    assert await stores.turns.checkpoint_many([Checkpoint(HOLD, (), 2)]) == {"resp_a"}
    assert await stores.turns.find("resp_a") == end.response


async def test_a_deleted_response_is_gone_and_the_log_stays(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1))
    await stores.turns.delete("resp_a")
    await stores.turns.delete("resp_a")
    assert await stores.turns.find("resp_a") is None
    assert len(await stores.conversations.log("conv_a")) == 2


async def test_a_response_that_is_deleted_while_it_runs_still_ends(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.delete("resp_a")
    assert await stores.turns.find("resp_a") is None
    (taken,) = await stores.turns.take_all("replica-b")
    assert await stores.turns.finish(held_by(taken, make_end(1)))
    assert await stores.turns.find("resp_a") is None
    conversation = await stores.conversations.find("conv_a")
    assert conversation == make_conversation(log_length=2, latest_response_id="resp_a")


async def test_responses_outlive_their_conversation(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1)
    await stores.turns.finish(end)
    await stores.conversations.delete("conv_a")
    assert await stores.turns.find("resp_a") == end.response


def held_by(taken: TakenTurn, end: FinishedTurn) -> FinishedTurn:
    return end._replace(response=end.response.model_copy(update={"fence": taken.response.fence}))


async def begun_by(stores: Stores, *replicas: str) -> None:
    """Begin a turn `resp_<name>` of each replica."""
    for name in replicas:
        turn = make_turn(None, f"resp_{name}", f"conv_{name}")
        response = make_response(f"resp_{name}", f"conv_{name}", replica=name)
        stored = {"response": response, "plan": f"plan of {name}", "context_parts": f"parts of {name}"}
        await stores.turns.begin(turn._replace(**stored))


async def taken_by(stores: Stores, replica: str, limit: int = 9) -> list[str]:
    """Renew the lease of a replica and let it take over what is abandoned."""
    await stores.turns.renew(replica, TERMS)
    return [taken.response.id for taken in await stores.turns.take_abandoned(replica, TERMS, limit)]


async def trusted(stores: Stores, replica: str, *others: str) -> None:
    """Let a replica renew its lease until it may judge, and others theirs beside it."""
    for _ in range(BEATS):
        for name in (replica, *others):
            await stores.turns.renew(name, TERMS)
        await stores.pass_time(TERMS.beat_seconds)


async def test_turns_without_a_lease_are_taken_over(stores: Stores) -> None:
    await begun_by(stores, "alive", "silent", "unheard", "judge")
    await stores.turns.renew("silent", TERMS)
    assert await taken_by(stores, "judge") == []
    await trusted(stores, "judge", "alive")
    await stores.turns.renew("alive", TERMS)
    assert await taken_by(stores, "judge", limit=1) == ["resp_silent"]
    assert await taken_by(stores, "judge") == ["resp_unheard"]
    assert await taken_by(stores, "judge") == []
    found = await stores.turns.find("resp_silent")
    assert found is not None
    assert (found.replica, found.fence) == ("judge", 1)


async def test_of_several_judges_one_takes_a_turn(stores: Stores) -> None:
    await begun_by(stores, *(f"dead_{number}" for number in range(5)))
    judges = ("judge_a", "judge_b", "judge_c")
    await trusted(stores, *judges)
    taken = await asyncio.gather(*(taken_by(stores, judge) for judge in judges))
    assert sorted(one for part in taken for one in part) == [f"resp_dead_{number}" for number in range(5)]


async def test_who_could_not_renew_judges_nobody_for_a_lease(stores: Stores) -> None:
    """Whatever held up the judge may have held up the others."""
    await begun_by(stores, "healthy")
    await trusted(stores, "judge", "healthy")
    await stores.pass_time(TERMS.seconds * 1.1)
    assert await stores.turns.take_abandoned("judge", TERMS, 9) == ()
    assert await taken_by(stores, "judge") == []
    await trusted(stores, "judge")
    assert await taken_by(stores, "judge") == ["resp_healthy"]


async def test_a_released_turn_is_taken_over_at_once(stores: Stores) -> None:
    await begun_by(stores, "leaving")
    await stores.turns.renew("leaving", TERMS)
    found = await stores.turns.find("resp_leaving")
    assert found is not None
    await stores.turns.release(found.hold)
    assert await taken_by(stores, "other") == ["resp_leaving"]
    await stores.turns.release(found.hold)
    assert await taken_by(stores, "third") == []


async def test_an_only_replica_takes_over_all_but_its_own(stores: Stores) -> None:
    await begun_by(stores, "before", "own")
    await stores.turns.append(make_response("resp_before", "conv_before").hold, 1, make_exchange(1, last_event=5))
    (taken,) = await stores.turns.take_all("own")
    assert (taken.response.id, taken.response.fence, taken.response.replica) == ("resp_before", 1, "own")
    assert (taken.plan, taken.context_parts, taken.settled_event) == ("plan of before", "parts of before", 5)


async def test_a_replica_takes_turns_of_its_own_again(stores: Stores) -> None:
    """A turn that was begun by a call whose answer was lost is taken from whoever might still write it."""
    await begun_by(stores, "other", "own")
    await stores.turns.begin(make_turn(None, "resp_ended", "conv_ended"))
    assert await stores.turns.find_running_ids("own") == {"resp_own"}
    assert await stores.turns.take_again("own", ["resp_other", "resp_unheard"]) == ()
    (taken,) = await stores.turns.take_again("own", ["resp_other", "resp_own"])
    assert (taken.response.id, taken.response.fence, taken.response.replica) == ("resp_own", 1, "own")
    assert (taken.plan, taken.settled_event) == ("plan of own", make_response().last_event)
    assert await stores.turns.checkpoint_many([Checkpoint(make_response("resp_own", "conv_own").hold, (), 9)])
    await stores.turns.finish(make_end(1, "resp_ended", "conv_ended"))
    assert await stores.turns.find_running_ids("replica-a") == frozenset()
    assert await stores.turns.take_again("replica-a", ["resp_ended"]) == ()


async def test_who_lost_a_turn_writes_nothing_more_of_it(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    (taken,) = await stores.turns.take_all("replica-b")
    with pytest.raises(TurnTaken):
        await stores.turns.append(HOLD, 1, make_exchange(1))
    assert await stores.turns.checkpoint_many([Checkpoint(HOLD, ({"type": "message"},), 9)]) == {"resp_a"}
    assert not await stores.turns.finish(make_end(1))
    await stores.turns.release(HOLD)
    assert await stores.turns.find("resp_a") == taken.response
    assert len(await stores.conversations.log("conv_a")) == 1
    await stores.turns.append(taken.response.hold, 1, make_exchange(1))
    assert await stores.turns.finish(held_by(taken, make_end(2)))
    assert [entry.position for entry in await stores.conversations.log("conv_a")] == [0, 1, 2]


async def test_of_checkpoints_together_those_of_lost_turns_are_refused(stores: Stores) -> None:
    names = ("a", "b", "c", "d")
    for name in names:
        await stores.turns.begin(make_turn(None, f"resp_{name}", f"conv_{name}"))
    await stores.turns.finish(make_end(1, "resp_b", "conv_b"))
    await stores.turns.take_all("replica-b")
    holds = [make_response(f"resp_{name}", f"conv_{name}").hold for name in names]
    taken = [*holds[:2], *(hold._replace(fence=1) for hold in holds[2:])]
    calls = made(make_call(1))._replace(response_id="resp_d", conversation_id="conv_d")
    together = [Checkpoint(hold, ({"n": place},), 7) for place, hold in enumerate(taken[:3])]
    refused = await stores.turns.checkpoint_many([*together, Checkpoint(taken[3], ({"n": 3},), 7, calls)])
    assert refused == {"resp_a", "resp_b"}
    found = [await stores.turns.find(hold.response_id) for hold in holds]
    assert [response.last_event for response in found if response is not None and not response.status.is_terminal] == [
        make_response().last_event,
        7,
        7,
    ]
    assert await stores.turns.model_calls("resp_d") == calls.calls


async def test_an_exchange_keeps_what_a_checkpoint_has_stored_beyond_it(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.checkpoint_many([Checkpoint(HOLD, ({"type": "message", "n": 2},), 7)])
    await stores.turns.append(HOLD, 1, make_exchange(1, output=({"type": "message", "n": 1},), last_event=4))
    (taken,) = await stores.turns.take_all("replica-b")
    assert (taken.settled_event, taken.response.last_event) == (4, 7)
    assert taken.response.body["output"] == [{"type": "message", "n": 2}]


async def test_a_checkpoint_that_arrives_late_takes_nothing_back(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    late = Checkpoint(HOLD, ({"type": "message", "n": 0},), 3)
    await stores.turns.append(HOLD, 1, make_exchange(1, output=({"type": "message", "n": 1},), last_event=4))
    assert await stores.turns.checkpoint_many([late]) == frozenset()
    await stores.turns.checkpoint_many([Checkpoint(HOLD, ({"type": "message", "n": 2},), 7)])
    assert await stores.turns.checkpoint_many([late]) == frozenset()
    (taken,) = await stores.turns.take_all("replica-b")
    assert (taken.settled_event, taken.response.last_event) == (4, 7)
    assert taken.response.body["output"] == [{"type": "message", "n": 2}]


async def test_a_fork_may_repeat_the_ids_of_items(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    fork = make_turn(None, "resp_b", "conv_b")
    await stores.turns.begin(fork._replace(items=make_turn().items))
    assert await stores.conversations.find_item("conv_b", "msg_0") == make_item(0)


WANTED = SettingsDigest("h1", "b1")


async def seen_turn(
    stores: Stores,
    conversation_id: str,
    digest: str | None,
    length: int | None = None,
    ran_with: SettingsDigest | None = None,
) -> str:
    """Run a turn that ends at this chain, and return its response's id."""
    response_id = f"resp_{conversation_id}_{length or 0}"
    await stores.turns.begin(make_turn(length, response_id, conversation_id))
    end = make_end((length or 0) + 1, response_id, conversation_id)
    response = end.response.model_copy(update={"seen": digest})
    ended = response.model_copy(update={"ran_with": ran_with})
    assert await stores.turns.finish(end._replace(response=ended))
    found = await stores.turns.find(response_id)
    assert found is not None
    assert found.model_copy(update={"ran_with": None}) == response
    return response_id


async def test_the_newest_response_of_each_chain_is_found(stores: Stores) -> None:
    first = await seen_turn(stores, "conv_a", "11")
    second = await seen_turn(stores, "conv_a", "22", 2)
    newest = await seen_turn(stores, "conv_b", "11")
    await seen_turn(stores, "conv_c", None)
    assert await stores.turns.newest_seen(["33", "11", "22"], WANTED) == {"11": newest, "22": second}
    assert await stores.turns.newest_seen(["33"], WANTED) == {}
    await stores.turns.delete(newest)
    assert await stores.turns.newest_seen(["11"], WANTED) == {"11": first}
    await stores.conversations.delete("conv_a")
    assert await stores.turns.newest_seen(["11", "22"], WANTED) == {}


async def test_of_equal_chains_that_with_the_wanted_settings_is_found(stores: Stores) -> None:
    tried = [("h1", "b1"), ("h1", "b1"), ("h1", "b2"), ("h2", "b1")]
    ids = [
        await seen_turn(stores, f"conv_{place}", "11", None, SettingsDigest(*one)) for place, one in enumerate(tried)
    ]
    ids.append(await seen_turn(stores, "conv_z", "11"))
    wanted = {("h1", "b1"): 1, ("h1", "b2"): 2, ("h1", "b9"): 2, ("h2", "b2"): 3, ("h9", "b1"): 4}
    for settings, place in wanted.items():
        assert await stores.turns.newest_seen(["00", "11"], SettingsDigest(*settings)) == {"11": ids[place]}


async def test_an_opened_conversation_tells_what_was_seen_at_the_end_of_its_newest_response(stores: Stores) -> None:
    async def seen(conversation_id: str) -> tuple[str, int] | None:
        opened = await stores.conversations.open(conversation_id, lambda _: False)
        assert opened is not None
        return (opened.seen.digest, opened.seen.log_end) if opened.seen is not None else None

    await seen_turn(stores, "conv_a", "11")
    assert await seen("conv_a") == ("11", 2)
    await seen_turn(stores, "conv_a", None, 2)
    assert await seen("conv_a") is None
    await stores.turns.begin(make_turn(4, "resp_running", "conv_a"))
    assert await seen("conv_a") is None


async def test_a_response_that_was_deleted_while_it_ran_leaves_no_chain(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.delete("resp_a")
    end = make_end(1)
    response = end.response.model_copy(update={"seen": "11"})
    assert await stores.turns.finish(end._replace(response=response))
    assert await stores.turns.newest_seen(["11"], WANTED) == {}
