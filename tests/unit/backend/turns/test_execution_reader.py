"""Reading executions: whoever waits for the events of one comes to their end, whenever it is ended."""

import asyncio

from backend.turns.services.run.execution_reader import ExecutionReader
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import open_house
from tests.patience import PATIENCE_SECONDS


async def test_an_execution_that_is_ended_before_it_has_begun_comes_to_its_end() -> None:
    async with open_house(answer("One.")) as house:
        await house.ask()
        async with asyncio.TaskGroup() as group:
            reader = ExecutionReader(house.ports, group)
            inbox = reader.start(house.sent[0])
            reader.end()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await inbox.take() == []
        assert (reader.error, len(house.sent)) == (None, 1)
