"""Replays of turns whose events are no longer kept, by the official client."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.e2e.client.wire import Wire, wired_client
from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair, PairOptions, start_pair


@pytest.fixture(scope="module")
def forgetful(pairs: Pairs, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair that forgets the events of a turn at its end."""
    options = PairOptions(backend={"BACKEND_EVENT_RETENTION_SECONDS": "0"})
    return start_pair(pairs.launch, tmp_path_factory.mktemp("forgetful"), options)


@pytest.fixture
async def ann(forgetful: Pair, wire: Wire) -> AsyncIterator[AsyncOpenAI]:
    async with wired_client(forgetful, "ann", wire) as client:
        yield client


async def test_beginning_and_end_stand_for_all(ann: AsyncOpenAI, wire: Wire) -> None:
    live = [event async for event in await ann.responses.create(input="Hi", stream=True)]
    events = wire.newest.events
    response_id = events[0]["response"]["id"]
    assert [event async for event in await ann.responses.retrieve(response_id, stream=True)]
    assert wire.newest.events == [events[0], events[-1]]
    assert live[-1].sequence_number == len(live) - 1
    stream = await ann.responses.retrieve(response_id, stream=True, starting_after=3)
    assert [event.sequence_number async for event in stream] == [len(live) - 1]
    stream = await ann.responses.retrieve(response_id, stream=True, starting_after=len(live) - 1)
    assert [event async for event in stream] == []


async def test_the_stream_helper_is_content_with_it(ann: AsyncOpenAI) -> None:
    created = await ann.responses.create(input="Hi")
    async with ann.responses.stream(response_id=created.id) as stream:
        assert (await stream.get_final_response()).output_text == "ok"
    async with ann.responses.stream(response_id=created.id, starting_after=3) as stream:
        assert [event.type async for event in stream] == ["response.completed"]
