"""AutoGen: an assistant with a function."""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


async def main() -> None:
    """Ask twice."""
    # OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
    can = {
        "vision": True,
        "function_calling": True,
        "json_output": True,
        "family": "unknown",
        "structured_output": True,
    }
    client = OpenAIChatCompletionClient(model=os.environ["MODEL"], model_info=can)
    agent = AssistantAgent("helper", client, tools=[get_weather], reflect_on_tool_use=True)
    for words in ('Use get_weather({"city": "Paris"}).', "Thank you."):
        print((await agent.run(task=words)).messages[-1].content)


asyncio.run(main())
