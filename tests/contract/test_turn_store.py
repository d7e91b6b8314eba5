"""One contract for every `TurnStore`."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from backend.conversations.domain.responses import Checkpoint, ResponseStatus
from shared.errors import NotFound, TurnRunning
from tests.contract.store_cases import (
    KINDS,
    T0,
    Stores,
    make_conversation,
    make_end,
    make_entry,
    make_item,
    make_response,
    make_turn,
    open_stores,
)


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened


async def test_a_first_turn_makes_its_conversation(stores: Stores) -> None:
    turn = make_turn()
    await stores.turns.begin(turn)
    assert await stores.conversations.find("conv_a") == turn.conversation
    assert await stores.conversations.log("conv_a") == turn.entries
    assert await stores.conversations.all_items("conv_a", 9) == turn.items
    assert await stores.turns.find("resp_a") == turn.response
    assert await stores.turns.find("resp_b") is None


async def test_the_end_of_a_turn_frees_the_conversation(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1)
    assert await stores.turns.finish(end)
    assert await stores.turns.find("resp_a") == end.response
    conversation = await stores.conversations.find("conv_a")
    assert conversation == make_conversation(log_length=2, latest_response_id="resp_a")
    assert await stores.conversations.log("conv_a") == (*make_turn().entries, *end.entries)
    assert await stores.conversations.all_items("conv_a", 9) == (*make_turn().items, *end.items)


async def test_a_turn_ends_once(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    assert await stores.turns.finish(make_end(1))
    assert not await stores.turns.finish(make_end(2))
    assert not await stores.turns.finish(make_end(0, "resp_unknown"))
    assert len(await stores.conversations.log("conv_a")) == 2


async def test_an_end_without_words_frees_the_conversation_too(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1).model_copy(update={"entries": (), "items": ()})
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
    await stores.turns.begin(turn.model_copy(update={"conversation": changed}))
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


async def test_fifty_conversations_write_at_once(stores: Stores) -> None:
    async def converse(name: str) -> None:
        conversation_id = f"conv_{name}"
        for place in range(3):
            response_id = f"resp_{name}_{place}"
            length = 2 * place
            await stores.turns.begin(make_turn(length or None, response_id, conversation_id))
            await stores.turns.checkpoint_many([Checkpoint(response_id, (), 3)])
            assert await stores.turns.finish(make_end(length + 1, response_id, conversation_id))

    await asyncio.gather(*(converse(str(number)) for number in range(50)))
    for number in range(50):
        log = await stores.conversations.log(f"conv_{number}")
        assert [entry.position for entry in log] == list(range(6))


async def test_a_running_turn_appends(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.append("conv_a", 1, (make_entry(1), make_entry(2)))
    with pytest.raises(TurnRunning):
        await stores.turns.append("conv_a", 1, (make_entry(1),))
    assert await stores.turns.finish(make_end(3))
    assert [entry.position for entry in await stores.conversations.log("conv_a")] == [0, 1, 2, 3]


async def test_a_turn_that_lost_its_conversation_cannot_append(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1))
    with pytest.raises(TurnRunning):
        await stores.turns.append("conv_a", 2, (make_entry(2),))


async def test_an_end_on_a_log_that_has_grown_is_refused_whole(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.append("conv_a", 1, (make_entry(1),))
    with pytest.raises(TurnRunning):
        await stores.turns.finish(make_end(1))
    found = await stores.turns.find("resp_a")
    assert found is not None
    assert found.status is ResponseStatus.IN_PROGRESS


async def test_a_checkpoint_shows_in_the_output_until_the_end(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.checkpoint_many([Checkpoint("resp_a", ({"type": "message", "text": "so far"},), 4)])
    found = await stores.turns.find("resp_a")
    begun = make_turn().response
    so_far = {**begun.body, "output": [{"type": "message", "text": "so far"}]}
    assert found == begun.model_copy(update={"body": so_far, "last_event": 4})
    end = make_end(1)
    await stores.turns.finish(end)
    await stores.turns.checkpoint_many([Checkpoint("resp_a", (), 2)])
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
    assert [response.id for response in await stores.turns.unfinished(alive_since=None)] == ["resp_a"]
    assert await stores.turns.finish(make_end(1))
    assert await stores.turns.find("resp_a") is None
    conversation = await stores.conversations.find("conv_a")
    assert conversation == make_conversation(log_length=2, latest_response_id="resp_a")


async def test_responses_outlive_their_conversation(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    end = make_end(1)
    await stores.turns.finish(end)
    await stores.conversations.delete("conv_a")
    assert await stores.turns.find("resp_a") == end.response


async def test_what_dead_replicas_left_is_found(stores: Stores) -> None:
    for name in ("alive", "silent", "unheard"):
        turn = make_turn(None, f"resp_{name}", f"conv_{name}")
        response = make_response(f"resp_{name}", f"conv_{name}", replica=name)
        await stores.turns.begin(turn.model_copy(update={"response": response}))
    await stores.turns.beat("silent", T0)
    await stores.turns.beat("alive", T0)
    await stores.turns.beat("alive", T0 + timedelta(seconds=30))
    left = await stores.turns.unfinished(alive_since=T0 + timedelta(seconds=10))
    assert [response.id for response in left] == ["resp_silent", "resp_unheard"]
    everything = await stores.turns.unfinished(alive_since=None)
    assert [response.id for response in everything] == ["resp_alive", "resp_silent", "resp_unheard"]
    await stores.turns.finish(make_end(1, "resp_silent", "conv_silent"))
    left = await stores.turns.unfinished(alive_since=T0)
    assert [response.id for response in left] == ["resp_unheard"]


async def test_a_fork_may_repeat_the_ids_of_items(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    fork = make_turn(None, "resp_b", "conv_b")
    await stores.turns.begin(fork.model_copy(update={"items": make_turn().items}))
    assert await stores.conversations.find_item("conv_b", "msg_0") == make_item(0)
