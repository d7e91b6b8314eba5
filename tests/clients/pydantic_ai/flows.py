"""Flows of Pydantic AI's two models of OpenAI, with functions, forms of output and message histories."""

import base64

import flow_kit
from flow_kit import (
    API_KEY,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_TEXT,
    KNOWLEDGE_BASE_ID,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG,
    PNG_URL,
    SERVER_URL,
    TOO_LARGE,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    modes,
    questions,
    refused,
    run,
)
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    Embedder,
    FileSearchTool,
    ImageUrl,
    ModelMessagesTypeAdapter,
    NativeOutput,
    PromptedOutput,
    StructuredDict,
    ToolOutput,
    WebSearchTool,
)
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIChatModelSettings,
    OpenAIResponsesModel,
    OpenAIResponsesModelSettings,
)
from pydantic_ai.providers.openai import OpenAIProvider

KNOWLEDGE = NativeTool(FileSearchTool(file_store_ids=[KNOWLEDGE_BASE_ID]))


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class Place(BaseModel):
    """A place."""

    city: str


def agent(mode: str, name: str = MODEL, key: str = API_KEY, **options) -> Agent:
    """Return an agent over one of the models."""
    provider = OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0, api_key=key))
    model = (OpenAIResponsesModel if mode == "responses" else OpenAIChatModel)(name, provider=provider)
    return Agent(model, **options)


def with_weather(mode: str, **options) -> Agent:
    """Return an agent with a function."""
    one = agent(mode, **options)
    one.tool_plain(flow_kit.get_weather)
    return one


@modes("plain", "run, instructions, system_prompt")
async def plain(mode: str):
    """One turn."""
    result = await agent(mode, instructions="Be kind.", system_prompt="Be brief.").run("Hello pydantic")
    check_turn(1, result.output)
    check(result.usage.total_tokens > 0, result.usage)


@flow("plain", "model by name, openai: and openai-chat:")
async def by_name():
    """The provider as the environment says."""
    for prefix in ("openai", "openai-chat", "openai-responses"):
        check_turn(1, (await Agent(f"{prefix}:{MODEL}").run(f"Hello {prefix}")).output)


@modes("streamed", "run_stream")
async def streamed(mode: str):
    """Pieces of a text."""
    async with agent(mode).run_stream("Hello stream") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    check_turn(1, "".join(pieces))


@modes("streamed", "run_stream_events and iter with functions")
async def streamed_events(mode: str):
    """Events of a run that calls functions."""
    async with with_weather(mode).run_stream_events(TWO_ROUNDS) as events:
        kinds = [event.event_kind async for event in events]
    check(kinds.count("function_tool_result") == 2 and kinds[-1] == "agent_run_result", kinds)
    async with with_weather(mode).iter(PARALLEL) as going:
        nodes = [type(node).__name__ async for node in going]
    check(nodes.count("ModelRequestNode") == 2, nodes)


@modes("structured", "class, ToolOutput, NativeOutput, PromptedOutput, StructuredDict")
async def structured(mode: str):
    """Every way to a form."""
    for way in (Person, ToolOutput(Person), NativeOutput(Person), PromptedOutput(Person)):
        result = await agent(mode, output_type=way).run(f"Who, as JSON, by {type(way).__name__}?")
        check(isinstance(result.output, Person), way, result.output)
    described = StructuredDict(flow_kit.PERSON_SCHEMA, name="person")
    check((await agent(mode, output_type=described).run("Who, described?")).output["name"])
    either = await agent(mode, output_type=[Person, Place]).run("Who or where?")
    check(isinstance(either.output, Person | Place), either.output)


@modes("structured", "after functions, streamed")
async def structured_streamed(mode: str):
    """Functions first, then partial objects."""
    result = await with_weather(mode, output_type=Person).run(PARALLEL)
    check(isinstance(result.output, Person), result.output)
    async with agent(mode, output_type=Person).run_stream("Who, streamed?") as streaming:
        pieces = [piece async for piece in streaming.stream_output(debounce_by=None)]
    check(isinstance(pieces[-1], Person), pieces)


@modes("tools", "two rounds and parallel, then a second turn")
async def tools(mode: str):
    """Loops over functions and the history after them."""
    one = with_weather(mode)
    result = await one.run(TWO_ROUNDS)
    check("sun in Rome" in result.output, result.output)
    result = await one.run(PARALLEL, message_history=result.all_messages())
    check("rain in Paris" in result.output, result.output)
    stored = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    check_turn(3, (await one.run("Thank you", message_history=stored)).output)


@modes("tools", "an agent inside a function")
async def inner_agent(mode: str):
    """One agent asks another."""
    one = agent(mode)

    @one.tool_plain
    async def ask_expert(asked: str) -> str:
        """Ask an expert."""
        return (await agent(mode).run(asked)).output

    check("Well?" in (await one.run('Use ask_expert({"asked": "Well?"}).')).output)


@flow("knowledge", "FileSearchTool")
async def knowledge():
    """A search on our side, its results and the citation."""
    settings = OpenAIResponsesModelSettings(
        openai_include_raw_annotations=True, openai_include_file_search_results=True
    )
    one = agent("responses", capabilities=[KNOWLEDGE], model_settings=settings)
    result = await one.run(KNOWLEDGE_QUESTION)
    check(CODE_WORD in result.output, result.output)
    texts = [part for part in result.response.parts if part.part_kind == "text"]
    check(texts[-1].provider_details["annotations"][0]["filename"] == "handbook.md", result.response.parts)
    returned = [part for part in result.response.parts if "return" in part.part_kind]
    check(CODE_WORD in str(returned), result.response.parts)
    again = await one.run("And now?", message_history=result.all_messages())
    check("And now?" in again.output, again.output)


@flow("knowledge", "FileSearchTool streamed")
async def knowledge_streamed():
    """The same in pieces."""
    async with agent("responses", capabilities=[KNOWLEDGE]).run_stream(KNOWLEDGE_QUESTION) as result:
        check(CODE_WORD in await result.get_output())


@flow("knowledge", "chat, file_search through extra_body")
async def knowledge_chat():
    """The tools of the request as it is sent."""
    settings = OpenAIChatModelSettings(extra_body={"tools": [flow_kit.FILE_SEARCH]})
    result = await agent("chat", model_settings=settings).run(KNOWLEDGE_QUESTION)
    check(f"{CODE_WORD} [1]" in result.output, result.output)


@modes("knowledge", "MCPToolset")
async def mcp(mode: str):
    """The knowledge tools of the MCP server in an agent's loop."""
    toolset = MCPToolset(f"{SERVER_URL}/mcp", headers={"Authorization": f"Bearer {API_KEY}"})
    async with agent(mode, toolsets=[toolset]) as one:
        result = await one.run('Use search_knowledge({"query": "code word"}).')
    check(CODE_WORD in result.output or CODE_WORD in str(result.all_messages()), result.output)


@modes("history", "message_history")
async def history(mode: str):
    """Five turns, all messages each time."""
    messages = []
    one = with_weather(mode, instructions="Be kind.")
    for number, question in enumerate(questions(f"{mode}, message_history"), 1):
        result = await one.run(question, message_history=messages)
        check_turn(number, result.output)
        messages = result.all_messages()


@modes("history", "streamed, system_prompt")
async def history_streamed(mode: str):
    """Five turns, streamed."""
    messages = []
    one = agent(mode, system_prompt="Be kind.")
    for question in questions(f"{mode}, streamed, system_prompt"):
        async with one.run_stream(question, message_history=messages) as result:
            await result.get_output()
        messages = result.all_messages()


@flow("state", "openai_previous_response_id, openai_conversation_id")
async def previous_response():
    """The server keeps the history."""
    settings = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
    one = with_weather("responses", model_settings=settings)
    result = await one.run(TWO_ROUNDS)
    result = await one.run("Next", message_history=result.all_messages())
    check_turn(2, result.output)
    conversation = await AsyncOpenAI().conversations.create()
    settings = OpenAIResponsesModelSettings(openai_conversation_id=conversation.id)
    await agent("responses", model_settings=settings).run("First")
    check_turn(2, (await agent("responses", model_settings=settings).run("Second")).output)


@modes("images", "ImageUrl and BinaryContent")
async def image(mode: str):
    """An image beside a text."""
    for part in (ImageUrl(PNG_URL), BinaryContent(base64.b64decode(PNG), media_type="image/png")):
        result = await agent(mode).run(["What?", part])
        check("I see 1 image" in result.output, result.output)


@modes("files", "BinaryContent")
async def file(mode: str):
    """A document beside a text."""
    part = BinaryContent(FILE_TEXT.encode(), media_type="text/markdown", identifier="inventory")
    result = await agent(mode).run([part, "Which code word does the inventory name?"])
    check(FILE_CODE_WORD in result.output, result.output)


@modes("errors", "unknown model")
async def unknown_model(mode: str):
    """The message lists those that there are."""
    with refused("no-such-model", MODEL):
        await agent(mode, "no-such-model").run("x")


@modes("errors", "wrong key, too large, unsupported field")
async def refusals(mode: str):
    """What the user reads."""
    with refused("401", "key"):
        await agent(mode, key="sk-wrong").run("x")
    with refused("413", "33554432"):
        await agent(mode).run(TOO_LARGE)
    with refused("seed"):
        await agent(mode).run("x", model_settings={"extra_body": {"seed": "x"}})


@flow("errors", "unsupported native tool, logprobs, embeddings")
async def unsupported():
    """A tool that nobody runs is passed over; else the field's name is in the message."""
    check_turn(1, (await agent("responses", capabilities=[NativeTool(WebSearchTool())]).run("x")).output)
    with refused("logprobs"):
        await agent("chat", model_settings=OpenAIChatModelSettings(openai_top_logprobs=2)).run("x")
    with refused("404", "embeddings"):
        await Embedder("openai:text-embedding-3-small").embed_query("x")


@modes("options", "limits, thinking, user")
async def options(mode: str):
    """Settings that are taken."""
    settings = {
        "max_tokens": 300, "temperature": 0.2, "top_p": 0.8, "parallel_tool_calls": True, "timeout": 30,
        "openai_user": "u-1", "openai_store": True, "openai_reasoning_effort": "low",
        "openai_prompt_cache_key": "k-1",
    }  # fmt: skip
    extra = {"seed": 3, "stop_sequences": ["END"]} if mode == "chat" else {"openai_truncation": "auto"}
    one = with_weather(mode, model_settings=settings | extra)
    result = await one.run("Think: about options")
    check_turn(1, result.output)
    check_turn(2, (await one.run("Think: again", message_history=result.all_messages())).output)


run()
