"""Semantic Kernel: an agent with a plugin."""

import asyncio
import os

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class Weather:
    """What the agent may call."""

    @kernel_function
    def get_weather(self, city: str) -> str:
        """Return the weather of a city."""
        return f"rain in {city}"


async def main() -> None:
    """Ask twice in one thread."""
    # AsyncOpenAI reads OPENAI_BASE_URL and OPENAI_API_KEY from the environment
    service = OpenAIChatCompletion(ai_model_id=os.environ["MODEL"], async_client=AsyncOpenAI())
    agent = ChatCompletionAgent(service=service, name="helper", instructions="Be brief.", plugins=[Weather()])
    thread = None
    for words in ('Use Weather-get_weather({"city": "Paris"}).', "Thank you."):
        answer = await agent.get_response(messages=words, thread=thread)
        thread = answer.thread
        print(answer.content)
    # knowledge, behind the name of an agent of the server
    service = OpenAIChatCompletion(ai_model_id=os.environ["KNOWLEDGE_AGENT"], async_client=AsyncOpenAI())
    reader = ChatCompletionAgent(service=service, name="reader")
    print((await reader.get_response(messages="Which code word does the handbook name?")).content)


asyncio.run(main())
