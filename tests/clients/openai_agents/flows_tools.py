"""Flows of the Agents SDK: what functions may give, runs that wait for an approval, sessions with functions in them."""

from agents import (
    Agent,
    OpenAIConversationsSession,
    Runner,
    RunState,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.extensions import handoff_filters
from flow_kit import MODEL, PNG_URL, TWO_ROUNDS, check, flow, get_weather, run

set_tracing_disabled(disabled=True)
weather = function_tool(get_weather)


@function_tool
def picture() -> list[ToolOutputText | ToolOutputImage]:
    """Give a note and a picture."""
    return [ToolOutputText(text="a note"), ToolOutputImage(image_url=PNG_URL)]


@function_tool(needs_approval=True)
def order(item: str) -> str:
    """Order something, once somebody agrees."""
    return f"ordered {item}"


@flow("tools", "a function that gives text and an image")
async def parts():
    """Parts are what the model is sent."""
    found = await Runner.run(Agent(name="Ada", model=MODEL, tools=[picture]), "Use picture({}).")
    check("a note" in found.final_output, found.final_output)


@flow("tools", "an approval, the run kept as JSON meanwhile")
async def approval():
    """The run goes on from its stored state."""
    agent = Agent(name="Ada", model=MODEL, tools=[order])
    waiting = await Runner.run(agent, 'Use order({"item": "lamps"}).')
    check(waiting.interruptions, waiting)
    state = await RunState.from_string(agent, waiting.to_state().to_string())
    for interruption in state.get_interruptions():
        state.approve(interruption)
    found = await Runner.run(agent, state)
    check("ordered lamps" in found.final_output, found.final_output)


@flow("tools", "handoff that leaves calls of functions out of the history")
async def filtered_handoff():
    """The second agent gets a history without the calls that led to it."""
    second = Agent(name="Second", model=MODEL, tools=[weather])
    first = Agent(name="First", model=MODEL, handoffs=[handoff(second, input_filter=handoff_filters.remove_all_tools)])
    found = await Runner.run(first, "Use transfer_to_second({}).")
    check(found.last_agent.name == "Second", found.last_agent)


@flow("state", "OpenAIConversationsSession with functions, popped and cleared")
async def session():
    """Items come, go one by one from the end, and all at once."""
    kept = OpenAIConversationsSession()
    agent = Agent(name="Ada", model=MODEL, tools=[weather])
    await Runner.run(agent, TWO_ROUNDS, session=kept)
    await Runner.run(agent, "Hello again", session=kept)
    count = len(await kept.get_items())
    popped = [(await kept.pop_item())["role"] for _ in range(2)]
    check(popped == ["assistant", "user"] and len(await kept.get_items()) == count - 2, popped)
    found = await Runner.run(agent, "Corrected", session=kept)
    check("Corrected" in found.final_output, found.final_output)
    await kept.clear_session()
    found = await Runner.run(agent, "Anew", session=kept)
    check("Turn 1:" in found.final_output, found.final_output)


run()
