"""AG2: an agent with a function, whose reply can be asked on."""

import asyncio
import os

from ag2 import Agent
from ag2.config import OpenAIConfig


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


async def main() -> None:
    """Ask twice."""
    config = OpenAIConfig(os.environ["MODEL"], base_url=os.environ["OPENAI_BASE_URL"])
    agent = Agent("helper", "Be brief.", config=config, tools=[get_weather])
    first = await agent.ask('Use get_weather({"city": "Paris"}).')
    print(first.body)
    print((await first.ask("Thank you.")).body)
    # knowledge, behind the name of an agent of the server
    config = OpenAIConfig(os.environ["KNOWLEDGE_AGENT"], base_url=os.environ["OPENAI_BASE_URL"])
    reader = Agent("reader", config=config)
    print((await reader.ask("Which code word does the handbook name?")).body)


asyncio.run(main())
