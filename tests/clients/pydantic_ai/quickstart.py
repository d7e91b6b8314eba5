"""Pydantic AI over Chat Completions and over Responses."""

import os

from pydantic import BaseModel
from pydantic_ai import Agent, FileSearchTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings


class Greeting(BaseModel):
    """What a structured answer holds."""

    text: str


# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
agent = Agent(OpenAIChatModel(os.environ["MODEL"]), instructions="Answer briefly.")


@agent.tool_plain
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


first = agent.run_sync('Use get_weather({"city": "Paris"}).')
print(first.output)
print(agent.run_sync("Thank you.", message_history=first.all_messages()).output)
print(agent.run_sync("Greet me.", output_type=Greeting).output)

# knowledge, searched on the server
reader = Agent(
    OpenAIResponsesModel(os.environ["MODEL"]),
    capabilities=[NativeTool(FileSearchTool(file_store_ids=[os.environ["KNOWLEDGE_BASE_ID"]]))],
    model_settings=OpenAIResponsesModelSettings(openai_include_raw_annotations=True),
)
answer = reader.run_sync("Which code word does the handbook name?")
print(answer.output)
for part in answer.response.parts:
    if part.part_kind == "text":
        for citation in (part.provider_details or {}).get("annotations", []):
            print("source:", citation["filename"])
