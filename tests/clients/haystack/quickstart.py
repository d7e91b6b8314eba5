"""Haystack: a chat generator, and an agent with a function."""

import os
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool


@tool
def get_weather(city: Annotated[str, "the city"]) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


# OPENAI_API_KEY is read from the environment
generator = OpenAIChatGenerator(model=os.environ["MODEL"], api_base_url=os.environ["OPENAI_BASE_URL"])
print(generator.run([ChatMessage.from_user("Say hello.")])["replies"][0].text)
agent = Agent(chat_generator=generator, tools=[get_weather])
print(agent.run([ChatMessage.from_user('Use get_weather({"city": "Paris"}).')])["last_message"].text)
# knowledge, behind the name of an agent of the server
reader = OpenAIChatGenerator(model=os.environ["KNOWLEDGE_AGENT"], api_base_url=os.environ["OPENAI_BASE_URL"])
print(reader.run([ChatMessage.from_user("Which code word does the handbook name?")])["replies"][0].text)
