"""One streamed turn from the unmodified client to the model and back."""

from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply


async def test_a_streamed_turn(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Hel", "lo", " there")))
    async with pair.async_client() as client:
        stream = await client.responses.create(input="Hi", stream=True)
        events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Hello there"
