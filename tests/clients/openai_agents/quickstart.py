"""An agent with a function of its own, knowledge, and a session that the server keeps."""

import asyncio
import os

from agents import Agent, FileSearchTool, OpenAIConversationsSession, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)  # traces would go to OpenAI


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


agent = Agent(
    name="Assistant",
    instructions="Answer briefly.",
    model=os.environ["MODEL"],  # OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
    tools=[get_weather, FileSearchTool(vector_store_ids=[os.environ["KNOWLEDGE_BASE_ID"]])],
)


async def main() -> None:
    """Three turns of one conversation."""
    session = OpenAIConversationsSession()
    result = await Runner.run(agent, 'Use get_weather({"city": "Paris"}).', session=session)
    print(result.final_output)

    streamed = Runner.run_streamed(agent, "Say hello slowly.", session=session)
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)
    print()

    result = await Runner.run(agent, "Which code word does the handbook name?", session=session)
    print(result.final_output)
    for item in result.new_items:
        for part in getattr(item.raw_item, "content", None) or []:
            for citation in getattr(part, "annotations", []):
                print("source:", citation.filename)


asyncio.run(main())
