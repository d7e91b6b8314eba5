"""Flows of the Agents SDK over both of its models, with tools, handoffs and sessions."""

import base64
import tempfile
from pathlib import Path

import flow_kit
from agents import (
    Agent,
    AgentOutputSchema,
    FileSearchTool,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    WebSearchTool,
    function_tool,
    input_guardrail,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp
from flow_kit import (
    API_KEY,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_TEXT,
    KNOWLEDGE_BASE_ID,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG_URL,
    SERVER_URL,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    questions,
    refused,
    run,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
get_weather = function_tool(flow_kit.get_weather)
KNOWLEDGE = FileSearchTool(vector_store_ids=[KNOWLEDGE_BASE_ID], max_num_results=3, include_search_results=True)


class Person(BaseModel):
    """What a structured answer holds."""

    name: str
    age: int


def models(**options) -> dict:
    """Return both models; each has a client of its own, since each flow has an event loop of its own."""
    client = AsyncOpenAI(max_retries=0, **options)
    return {
        "responses": OpenAIResponsesModel(model=MODEL, openai_client=client),
        "chat": OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
    }


def agent(model: str, **options) -> Agent:
    """Return an agent over one of the models."""
    return Agent(name="Assistant", instructions="Be kind.", model=models()[model], **options)


def both(kind: str, name: str):
    """Register a flow once for each model; the function takes the model's name."""

    def register(body):
        for model in ("responses", "chat"):
            flow(kind, f"{model}, {name}")(lambda model=model: body(model))
        return body

    return register


@both("plain", "Runner.run")
async def plain(model: str):
    """One turn."""
    check_turn(1, (await Runner.run(agent(model), "Hello agent")).final_output)


@flow("plain", "Runner.run_sync, default model by name")
def plain_sync():
    """The synchronous runner, with what the environment says."""
    check_turn(1, Runner.run_sync(Agent(name="A", model=MODEL), "Hello sync").final_output)


@both("streamed", "run_streamed")
async def streamed(model: str):
    """Events of a run."""
    result = Runner.run_streamed(agent(model), "Hello stream")
    kinds = [event.data.type async for event in result.stream_events() if event.type == "raw_response_event"]
    check("response.output_text.delta" in kinds, kinds)
    check_turn(1, result.final_output)


@both("streamed", "run_streamed with functions")
async def streamed_tools(model: str):
    """A tool loop as events."""
    result = Runner.run_streamed(agent(model, tools=[get_weather]), TWO_ROUNDS)
    names = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
    check(names.count("tool_called") == 2 and names.count("tool_output") == 2, names)
    check("sun in Rome" in result.final_output, result.final_output)


@both("structured", "output_type")
async def structured(model: str):
    """A class as the form of the answer, strict and not."""
    check(isinstance((await Runner.run(agent(model, output_type=Person), "Who?")).final_output, Person))
    loose = AgentOutputSchema(dict[str, int], strict_json_schema=False)
    check(isinstance((await Runner.run(agent(model, output_type=loose), "Counts?")).final_output, dict))


@both("structured", "output_type after functions")
async def structured_tools(model: str):
    """Functions first, then the form."""
    result = await Runner.run(agent(model, output_type=Person, tools=[get_weather]), PARALLEL)
    check(isinstance(result.final_output, Person), result.final_output)


@both("tools", "two rounds and parallel, then a second turn")
async def tools(model: str):
    """Loops over functions, and a turn over the resent list."""
    one = agent(model, tools=[get_weather])
    result = await Runner.run(one, TWO_ROUNDS)
    check("sun in Rome" in result.final_output, result.final_output)
    result = await Runner.run(one, [*result.to_input_list(), {"role": "user", "content": PARALLEL}])
    check("rain in Paris" in result.final_output, result.final_output)
    result = await Runner.run(one, [*result.to_input_list(), {"role": "user", "content": "Thank you"}])
    check_turn(3, result.final_output)


@both("tools", "handoff")
async def handoff(model: str):
    """An agent that hands over to another."""
    spanish = agent(model, handoff_description="Speaks Spanish.")
    spanish.name = "Spanish agent"
    triage = agent(model, handoffs=[spanish])
    result = await Runner.run(triage, "Use transfer_to_spanish_agent({}).")
    check(result.last_agent.name == "Spanish agent" and "Spanish" in result.final_output, result.final_output)
    result = await Runner.run(spanish, [*result.to_input_list(), {"role": "user", "content": "Gracias"}])
    check_turn(2, result.final_output)


@both("tools", "agent as tool, guardrail, tool_choice")
async def as_tool(model: str):
    """An agent inside an agent; a guardrail; a demanded call."""
    inner = agent(model).as_tool(tool_name="ask_expert", tool_description="Ask an expert.")
    result = await Runner.run(agent(model, tools=[inner]), 'Use ask_expert({"input": "Well?"}).')
    check("Well?" in result.final_output, result.final_output)

    @input_guardrail
    async def never(context, of_agent, asked):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered="forbidden" in str(asked))

    try:
        await Runner.run(agent(model, input_guardrails=[never]), "Something forbidden")
    except InputGuardrailTripwireTriggered:
        pass
    else:
        check(False, "the guardrail did not trip")
    demanded = agent(model, tools=[function_tool(lambda_weather)], model_settings=ModelSettings(tool_choice="required"))
    demanded.tool_use_behavior = "stop_on_first_tool"
    check((await Runner.run(demanded, "Anything")).final_output == "weather of Ada")


def lambda_weather(city: str) -> str:
    """Return the weather of any city."""
    return f"weather of {city}"


@flow("knowledge", "FileSearchTool")
async def knowledge():
    """A search on our side and the citation."""
    result = await Runner.run(agent("responses", tools=[KNOWLEDGE, get_weather]), KNOWLEDGE_QUESTION)
    check(CODE_WORD in result.final_output, result.final_output)
    notes = [
        note.filename
        for item in result.new_items
        if item.type == "message_output_item"
        for part in item.raw_item.content
        for note in part.annotations
    ]
    check(notes == ["handbook.md"], notes)
    again = await Runner.run(
        agent("responses", tools=[KNOWLEDGE]), [*result.to_input_list(), {"role": "user", "content": "And now?"}]
    )
    check("And now?" in again.final_output, again.final_output)


@flow("knowledge", "MCPServerStreamableHttp")
async def mcp():
    """The knowledge tools of the MCP server in an agent's loop."""
    parameters = {"url": f"{SERVER_URL}/mcp", "headers": {"Authorization": f"Bearer {API_KEY}"}}
    async with MCPServerStreamableHttp(params=parameters, name="Ballast") as server:
        asked = 'Use search_knowledge({"query": "code word"}).'
        result = await Runner.run(agent("responses", mcp_servers=[server]), asked)
    check(CODE_WORD in str([item.raw_item for item in result.new_items]), result.final_output)


@both("history", "to_input_list")
async def history(model: str):
    """Five turns, the whole list each time."""
    items = []
    one = agent(model, tools=[get_weather])
    for number, question in enumerate(questions(f"{model}, to_input_list"), 1):
        result = await Runner.run(one, [*items, {"role": "user", "content": question}])
        check_turn(number, result.final_output)
        items = result.to_input_list()


@both("history", "SQLiteSession")
async def sqlite_session(model: str):
    """Five turns of a session kept by the client."""
    with tempfile.TemporaryDirectory() as directory:
        session = SQLiteSession("five", Path(directory) / "sessions.db")
        for number, question in enumerate(questions(f"{model}, SQLiteSession"), 1):
            result = await Runner.run(agent(model, tools=[get_weather]), question, session=session)
            check_turn(number, result.final_output)


@flow("state", "OpenAIConversationsSession")
async def conversations_session():
    """Three turns of a session kept by the server, with a function."""
    session = OpenAIConversationsSession(openai_client=AsyncOpenAI(max_retries=0))
    one = agent("responses", tools=[get_weather])
    check_turn(1, (await Runner.run(one, "First", session=session)).final_output)
    check("sun in Rome" in (await Runner.run(one, TWO_ROUNDS, session=session)).final_output)
    check_turn(3, (await Runner.run(one, "Third", session=session)).final_output)
    items = await session.get_items()
    check([item["content"] for item in items if item.get("role") == "user"], items)
    await session.clear_session()


@flow("state", "OpenAIConversationsSession.pop_item")
async def pop_item():
    """Take back question and answer, and ask anew."""
    session = OpenAIConversationsSession(openai_client=AsyncOpenAI(max_retries=0))
    await Runner.run(agent("responses"), "First", session=session)
    check((await session.pop_item())["role"] == "assistant")
    check((await session.pop_item())["role"] == "user")
    check_turn(1, (await Runner.run(agent("responses"), "Anew", session=session)).final_output)


@flow("state", "previous_response_id and conversation_id")
async def previous_response():
    """The server keeps the history, loops included."""
    one = agent("responses", tools=[get_weather])
    result = await Runner.run(one, TWO_ROUNDS, auto_previous_response_id=True)
    result = await Runner.run(one, "Next", previous_response_id=result.last_response_id)
    check_turn(2, result.final_output)
    conversation = await AsyncOpenAI().conversations.create()
    await Runner.run(one, TWO_ROUNDS, conversation_id=conversation.id)
    check_turn(2, (await Runner.run(one, "Next", conversation_id=conversation.id)).final_output)


@both("images", "input_image")
async def image(model: str):
    """An image beside a text."""
    parts = [{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": PNG_URL, "detail": "auto"}]
    result = await Runner.run(agent(model), [{"role": "user", "content": parts}])
    check("I see 1 image" in result.final_output, result.final_output)


@both("files", "input_file")
async def file(model: str):
    """A document beside a text."""
    coded = f"data:text/markdown;base64,{base64.b64encode(FILE_TEXT.encode()).decode()}"
    parts = [
        {"type": "input_file", "filename": "inventory.md", "file_data": coded},
        {"type": "input_text", "text": "Which code word does the inventory name?"},
    ]
    result = await Runner.run(agent(model), [{"role": "user", "content": parts}])
    check(FILE_CODE_WORD in result.final_output, result.final_output)


@both("errors", "unknown model")
async def unknown_model(model: str):
    """The message lists those that there are."""
    one = agent(model)
    one.model.model = "no-such-model"
    with refused("no-such-model", MODEL):
        await Runner.run(one, "x")


@both("errors", "wrong key")
async def wrong_key(model: str):
    """A key that is none."""
    one = Agent(name="A", model=models(api_key="sk-wrong")[model])
    with refused("401", "key"):
        await Runner.run(one, "x")


@flow("errors", "unsupported tool")
async def unsupported():
    """A tool that nobody runs is passed over."""
    check_turn(1, (await Runner.run(agent("responses", tools=[WebSearchTool()]), "x")).final_output)


@both("options", "ModelSettings")
async def options(model: str):
    """Settings that are taken."""
    settings = ModelSettings(
        temperature=0.3, top_p=0.9, max_tokens=300, metadata={"a": "b"}, store=True, parallel_tool_calls=True,
        truncation="auto", verbosity="low", include_usage=True,
    )  # fmt: skip
    result = await Runner.run(agent(model, tools=[get_weather], model_settings=settings), "Hello settings")
    check_turn(1, result.final_output)
    check(result.context_wrapper.usage.total_tokens > 0, result.context_wrapper.usage)


run()
