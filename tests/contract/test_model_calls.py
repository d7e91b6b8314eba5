"""What every `TurnStore` keeps of model calls."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.conversations.domain.model_calls import CacheMiss, TailMessage
from backend.conversations.domain.placed_blocks import text_digest
from backend.conversations.domain.prompt_record import MissCause, Reuse, SentPrompt, Shortfall
from backend.conversations.domain.responses import Checkpoint
from shared.models.events import Cost, Usage
from tests.contract.store_cases import (
    HEADER,
    HOLD,
    KINDS,
    Stores,
    made,
    make_call,
    make_conversation,
    make_end,
    make_exchange,
    make_turn,
    open_stores,
)

SENT = SentPrompt(epoch=0, tools="ab", messages=("s01", "u02"), fixed=2)


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened


FULL = make_call(
    1,
    epoch_reason="new_conversation",
    tail=(TailMessage(index=1, text="In scope: nothing."),),
    reuse=Reuse(messages=2, size_bytes=300, tokens=70, first_difference="messages[2].content"),
    shortfall=Shortfall.OURS,
    usage=Usage(input_tokens=90, cached_tokens=0),
    cost=Cost(currency="USD", amount=0.001, saved=0.0),
    left_out=("counts of tokens", "calls"),
    miss=CacheMiss(cause=MissCause.EVICTED, diagnosis="unchanged"),
)


async def sent_by(stores: Stores) -> SentPrompt | None:
    conversation = await stores.conversations.find("conv_a")
    assert conversation is not None
    return conversation.sent


async def test_calls_are_kept_with_entries_and_with_the_end(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    assert await stores.turns.model_calls("resp_a") == ()
    await stores.turns.append(HOLD, 1, make_exchange(1, calls=made(FULL, sent=SENT)))
    assert await sent_by(stores) == SENT
    later = SENT.model_copy(update={"messages": ("s01", "u02", "a03"), "fixed": 3})
    second = make_call(2, header=HEADER.model_copy(update={"tools": ""}))
    await stores.turns.finish(make_end(2)._replace(calls=made(second, sent=later)))
    assert await stores.turns.model_calls("resp_a") == (FULL, second)
    assert await sent_by(stores) == later


CLASSIC = make_call(
    1,
    tail=(
        TailMessage(index=1, text="CA \x00 \u6cb3", kind="custom_instructions"),
        TailMessage(index=2, text="[project]", kind="project_files"),
        TailMessage(index=3, text="In scope: nothing."),
        TailMessage(index=5, text="Cite.", kind="reminder"),
    ),
    placement="classic",
    rewritten_tokens=7,
)


async def test_texts_outside_of_the_log_are_kept_once_and_come_back_with_calls(stores: Stores) -> None:
    texts = ("CA \x00 \u6cb3", "[project]")
    digests = [text_digest(text) for text in texts]
    await stores.turns.begin(make_turn()._replace(texts=texts))
    assert await stores.turns.find_placed_texts("conv_a", [*digests, "none"]) == dict(zip(digests, texts, strict=True))
    assert await stores.turns.find_placed_texts("conv_b", digests) == {}
    assert await stores.turns.find_placed_texts("conv_a", []) == {}
    await stores.turns.append(HOLD, 1, make_exchange(1, calls=made(CLASSIC, sent=SENT)))
    again = CLASSIC.model_copy(update={"call": 2})
    await stores.turns.checkpoint_many([Checkpoint(HOLD, (), 9, made(again, sent=SENT))])
    assert await stores.turns.model_calls("resp_a") == (CLASSIC, again)


async def test_what_was_sent_stays_until_something_else_is(stores: Stores) -> None:
    await stores.conversations.create(make_conversation(sent=SENT), (), ())
    turn = make_turn(0)
    await stores.turns.begin(turn._replace(conversation=turn.conversation))
    assert await sent_by(stores) == SENT
    await stores.turns.finish(make_end(1)._replace(calls=made(make_call(1))))
    assert await sent_by(stores) == SENT


async def test_a_branch_begins_with_what_it_shares(stores: Stores) -> None:
    turn = make_turn()
    branch = turn.conversation.model_copy(update={"sent": SENT})
    await stores.turns.begin(turn._replace(conversation=branch))
    assert await sent_by(stores) == SENT


async def test_a_checkpoint_adds_calls_and_changes_none(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.checkpoint_many([Checkpoint(HOLD, (), 2, made(make_call(1), sent=SENT))])
    assert await stores.turns.model_calls("resp_a") == (make_call(1),)
    assert await sent_by(stores) is None
    ended = make_call(1, usage=Usage(cached_tokens=64), shortfall=Shortfall.PROVIDER_MISS)
    await stores.turns.append(HOLD, 1, make_exchange(1, calls=made(ended, make_call(2))))
    await stores.turns.checkpoint_many([Checkpoint(HOLD, (), 2, made(make_call(1), make_call(2), make_call(3)))])
    assert await stores.turns.model_calls("resp_a") == (ended, make_call(2), make_call(3))


async def test_calls_go_with_their_response(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1)._replace(calls=made(FULL)))
    await stores.turns.delete("resp_a")
    assert await stores.turns.model_calls("resp_a") == ()


async def test_a_response_that_is_deleted_while_it_runs_leaves_no_calls(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.append(HOLD, 1, make_exchange(1, calls=made(FULL)))
    await stores.turns.delete("resp_a")
    await stores.turns.finish(make_end(2)._replace(calls=made(make_call(2))))
    late = Checkpoint(HOLD, (), 2, made(make_call(3)))
    assert await stores.turns.checkpoint_many([late]) == {"resp_a"}
    assert await stores.turns.model_calls("resp_a") == ()


async def test_calls_go_with_their_conversation(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    await stores.turns.finish(make_end(1)._replace(calls=made(FULL)))
    await stores.conversations.delete("conv_a")
    assert await stores.turns.model_calls("resp_a") == ()
