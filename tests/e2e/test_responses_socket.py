"""Over real services, with the official client: turns over one WebSocket, and what a compaction carries to the next."""

from typing import Any, cast

from shared.prompts.summary import frame_summary
from tests.e2e.pair import MODEL, Pair
from tests.fakes.model_server import FakeModelControl, Reply


async def test_turns_of_a_socket_and_a_carried_summary_reach_the_model(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    await small_model.script(Reply(text=("One.",)), Reply(text=("Two.",)))
    async with small_pair.async_client("sockets") as client:
        async with client.responses.connect() as connection:
            first = await ended(connection, input="First")
            second = await ended(connection, input="Then", previous_response_id=first["id"])
        assert second["output"][0]["content"][0]["text"] == "Two."
        await small_model.script(Reply(text=("All was counted.",)), Reply(text=("Yes.",)))
        made = await client.responses.compact(model=MODEL, previous_response_id=second["id"])
        carried = cast("list[Any]", cast(Any, made.to_dict(warnings=False))["output"])
        said = await client.responses.create(model=MODEL, input=[*carried, {"role": "user", "content": "Sure?"}])
        assert said.output_text == "Yes."
    asked: list[Any] = [request.json_body["messages"] for request in await small_model.requests()]
    contents: list[list[Any]] = [[message["content"] for message in messages] for messages in asked]
    assert frame_summary("All was counted.") in contents[-1]
    assert contents[2][: len(contents[1])] == contents[1], "a summary is asked for with the prefix that was sent"


async def ended(connection: Any, **fields: Any) -> dict[str, Any]:
    """Run a turn over the connection, and return its response."""
    await connection.send({"type": "response.create", "model": MODEL, **fields})
    async for event in connection:
        assert event.type != "error", event
        if event.type == "response.completed":
            return cast("dict[str, Any]", event.response.to_dict())
    raise AssertionError
