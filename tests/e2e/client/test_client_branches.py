"""`previous_response_id`: the newest continues its conversation, an older one forks it."""

from typing import Any

import openai
import orjson
import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response

from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply


def prefix_bytes(request: RecordedRequest) -> bytes:
    """A model request's body up to the end of its messages, without the bracket that closes them."""
    body = request.body
    messages: Any = request.json_body["messages"]
    last = orjson.dumps(messages[-1])
    return body[: body.index(last) + len(last)]


def conversation_of(response: Response) -> str:
    assert response.conversation is not None
    return response.conversation.id


async def three_turns(client: AsyncOpenAI, model: FakeModelControl) -> list[Response]:
    """One conversation: a, A, b, B, c, C."""
    await model.script(*(Reply(text=(text,)) for text in "ABC"))
    turns = [await client.responses.create(input="a", instructions="Be brief.")]
    for asked in "bc":
        turns.append(await client.responses.create(input=asked, previous_response_id=turns[-1].id))
    return turns


async def test_the_newest_continues(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    turns = await three_turns(ann, model)
    assert len({conversation_of(turn) for turn in turns}) == 1
    assert turns[2].previous_response_id == turns[1].id
    first, second, third = await model.requests()
    assert second.body.startswith(prefix_bytes(first))
    assert third.body.startswith(prefix_bytes(second))


async def test_an_older_one_forks_with_the_same_bytes(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    turns = await three_turns(ann, model)
    await model.script(Reply(text=("D",)))
    branch = await ann.responses.create(input="d", previous_response_id=turns[0].id)
    assert conversation_of(branch) != conversation_of(turns[0])
    assert branch.previous_response_id == turns[0].id
    assert branch.instructions == "Be brief."
    first, second, _, forked = await model.requests()
    assert forked.body.startswith(prefix_bytes(first))
    assert forked.json_body["messages"][:-1] == second.json_body["messages"][:-1]
    assert forked.json_body.get("prompt_cache_key") == first.json_body.get("prompt_cache_key")

    await ann.conversations.items.list(conversation_of(branch), order="asc")
    assert wire.newest.texts == ["a", "A", "d", "D"]
    await ann.conversations.items.list(conversation_of(turns[0]), order="asc")
    assert wire.newest.texts == ["a", "A", "b", "B", "c", "C"]


async def test_branch_and_trunk_both_go_on(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    turns = await three_turns(ann, model)
    branch = await ann.responses.create(input="d", previous_response_id=turns[1].id)
    longer = await ann.responses.create(input="e", previous_response_id=branch.id)
    trunk = await ann.responses.create(input="f", previous_response_id=turns[2].id)
    assert conversation_of(longer) == conversation_of(branch)
    assert conversation_of(trunk) == conversation_of(turns[0])
    twig = await ann.responses.create(input="g", previous_response_id=branch.id)
    assert conversation_of(twig) not in (conversation_of(branch), conversation_of(trunk))
    sent = (await model.requests())[-1].json_body["messages"]
    assert [message["content"].partition("\n")[0] for message in sent[1:]] == ["a", "A", "b", "B", "d", "ok", "g"]


async def test_an_item_of_a_branch_is_found_in_it(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    turns = await three_turns(ann, model)
    branch = await ann.responses.create(input="d", previous_response_id=turns[0].id)
    await ann.conversations.items.list(conversation_of(branch))
    for item in wire.newest.json["data"]:
        await ann.conversations.items.retrieve(item["id"], conversation_id=conversation_of(branch))
        assert wire.newest.json == item


async def test_a_running_one_is_a_conflict(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("A",), hold_after=0))
    running = await ann.responses.create(input="a", background=True)
    with pytest.raises(openai.ConflictError) as caught:
        await ann.responses.create(input="b", previous_response_id=running.id)
    assert caught.value.param == "previous_response_id"
    assert wire.newest.headers["x-should-retry"] == "false"
    await ann.responses.cancel(running.id)


async def test_an_older_one_forks_while_the_trunk_is_running(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(Reply(text=("A",)), Reply(text=("B",), hold_after=0), Reply(text=("C",)))
    first = await ann.responses.create(input="a")
    running = await ann.responses.create(input="b", previous_response_id=first.id, background=True)
    await model.wait_held()
    branch = await ann.responses.create(input="c", previous_response_id=first.id)
    assert branch.output_text == "C"
    await ann.responses.cancel(running.id)


async def test_what_may_not_be_continued(ann: AsyncOpenAI, bob: AsyncOpenAI) -> None:
    first = await ann.responses.create(input="a")
    for client, response_id in ((bob, first.id), (ann, "resp_nobody")):
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(input="b", previous_response_id=response_id)
        assert caught.value.param == "previous_response_id"
    with pytest.raises(openai.BadRequestError) as both:
        await ann.responses.create(input="b", previous_response_id=first.id, conversation=conversation_of(first))
    assert both.value.param == "previous_response_id"


async def test_behind_an_item_that_was_taken_out_the_prefix_stays(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    turns = await three_turns(ann, model)
    conversation = conversation_of(turns[0])
    for _ in range(3):
        page = await ann.conversations.items.list(conversation, limit=1)
        assert (await ann.conversations.items.delete(page.data[0].id or "", conversation_id=conversation)).id
    await model.script(Reply(text=("D",)))
    await ann.responses.create(input="d", conversation=conversation)
    branch = await ann.responses.create(input="e", previous_response_id=turns[2].id)
    first, second, third, shorter, whole = await model.requests()
    assert shorter.body.startswith(prefix_bytes(second))
    assert shorter.json_body["messages"][:-1] == second.json_body["messages"]
    assert whole.body.startswith(prefix_bytes(third))
    assert first.json_body.get("prompt_cache_key") == shorter.json_body.get("prompt_cache_key")
    assert conversation_of(branch) != conversation
    await ann.conversations.items.list(conversation, order="asc")
    assert wire.newest.texts == ["a", "A", "b", "d", "D"]
    await ann.responses.input_items.list(turns[2].id)
    assert wire.newest.texts == ["c"]
