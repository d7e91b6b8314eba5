"""A row of the log that cannot be read: its conversation stops and says where, the others go on."""

import pytest

from tests.e2e.pair import Pair
from tests.e2e.stored_rows import write
from tests.e2e.turns import bare_client, items_of, messages_in, turn
from tests.fakes.model_server import FakeModelControl

CORRUPTIONS = [
    ("content", '{"role": "user"'),
    ("content", '{"role": "wizard", "content": "x"}'),
    ("content", ""),
    ("content", None),
    ("kind", "riddle"),
    ("kind", "void"),
    ("kind", "tool_result"),
    ("reset", '{"reason": "whim"}'),
    ("context", "[]"),
]


@pytest.mark.parametrize(("column", "written"), CORRUPTIONS)
async def test_a_corrupt_row_stops_its_conversation_and_names_its_place(
    pair: Pair, model: FakeModelControl, column: str, written: str | None
) -> None:
    async with bare_client(pair, "corrupt") as client:
        broken, whole = [await turn(client, "One?"), await turn(client, "One?")]
        second = await turn(client, "Two?", previous_response_id=broken["id"])
        conversation = broken["conversation"]["id"]
        statement = f"UPDATE log_entry SET {column} = :written WHERE conversation_id = :id AND position = 2"
        await write(pair, statement, written=written, id=conversation)
        for fields in ({"conversation": conversation}, {"previous_response_id": second["id"]}):
            for more in ({}, {"stream": True}, {"background": True}):
                answer = await client.post("/v1/responses", json={"input": "?", **fields, **more})
                assert answer.status_code == 500, answer.text
                error = answer.json()["error"]
                assert (error["type"], error["code"], error["param"]) == ("server_error", "server_error", None)
                assert f"position 2 of conversation {conversation}" in error["message"]
        asked_before = len(await model.requests())
        assert asked_before == 3
        assert len(await items_of(client, conversation)) == 4
        await turn(client, "Two?", previous_response_id=whole["id"])
        # The branch before the row holds nothing of it.
        await turn(client, "Other?", previous_response_id=broken["id"])
    other = messages_in((await model.requests())[-1])
    assert [message["role"] for message in other] == ["system", "user", "assistant", "user"]


async def test_a_row_that_is_gone_is_missed(pair: Pair, model: FakeModelControl) -> None:
    """Without it the request would be another one, and nobody would know."""
    async with bare_client(pair, "corrupt") as client:
        for position in (0, 1, 3):
            first = await turn(client, "One?")
            second = await turn(client, "Two?", previous_response_id=first["id"])
            conversation = first["conversation"]["id"]
            statement = "DELETE FROM log_entry WHERE conversation_id = :id AND position = :position"
            await write(pair, statement, id=conversation, position=position)
            answer = await client.post("/v1/responses", json={"input": "?", "previous_response_id": second["id"]})
            assert answer.status_code == 500, answer.text
            assert f"position {position} of conversation {conversation}" in answer.json()["error"]["message"]
    assert len(await model.requests()) == 6


async def test_a_log_that_is_gone_altogether_is_missed_too(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "corrupt") as client:
        first = await turn(client, "One?")
        conversation = first["conversation"]["id"]
        await write(pair, "DELETE FROM log_entry WHERE conversation_id = :id AND position = 0", id=conversation)
        await write(pair, "DELETE FROM log_entry WHERE conversation_id = :id AND position = 1", id=conversation)
        answer = await client.post("/v1/responses", json={"input": "?", "conversation": conversation})
        assert answer.status_code == 500, answer.text
        assert f"position 0 of conversation {conversation}" in answer.json()["error"]["message"]


async def test_an_epoch_without_its_beginning_is_missed_too(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "corrupt") as client:
        first = await turn(client, "One?")
        conversation = first["conversation"]["id"]
        await turn(client, "Two?", conversation=conversation, instructions="Be brief.")
        await write(
            pair, "UPDATE log_entry SET reset = NULL WHERE conversation_id = :id AND position = 2", id=conversation
        )
        answer = await client.post("/v1/responses", json={"input": "?", "conversation": conversation})
        assert answer.status_code == 500, answer.text
        assert f"position 2 of conversation {conversation}" in answer.json()["error"]["message"]
