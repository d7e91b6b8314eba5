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
    can = dict.fromkeys(("vision", "function_calling", "json_output", "structured_output"), True)
    can["family"] = "unknown"
    client = OpenAIChatCompletionClient(model=os.environ["MODEL"], model_info=can)
    agent = AssistantAgent("helper", client, tools=[get_weather], reflect_on_tool_use=True)
    for words in ('Use get_weather({"city": "Paris"}).', "Thank you."):
        print((await agent.run(task=words)).messages[-1].content)
    # knowledge, behind the name of an agent of the server
    reader = AssistantAgent("reader", OpenAIChatCompletionClient(model=os.environ["KNOWLEDGE_AGENT"], model_info=can))
    print((await reader.run(task="Which code word does the handbook name?")).messages[-1].content)


asyncio.run(main())
