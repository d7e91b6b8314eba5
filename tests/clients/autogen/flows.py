"""Flows of AutoGen: assistants, teams that take turns, and teams whose next speaker a model chooses."""

import base64

import flow_kit
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, MultiModalMessage
from autogen_agentchat.teams import MagenticOneGroupChat, RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core import Image
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from flow_kit import (
    BASE_URL,
    CODE_WORD,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    questions,
    refused,
    run,
)
from pydantic import BaseModel

CAN = {"vision": True, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": True}


class Person(BaseModel):
    """A person."""

    name: str
    age: int


async def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return flow_kit.get_weather(city)


def client(name: str = MODEL, **options) -> OpenAIChatCompletionClient:
    """Return the client of Chat Completions."""
    return OpenAIChatCompletionClient(model=name, base_url=BASE_URL, model_info=CAN, max_retries=0, **options)


def agent(name: str = "helper", **options) -> AssistantAgent:
    """Return an assistant."""
    return AssistantAgent(name, client(), **options)


@flow("plain", "AssistantAgent.run")
async def plain():
    """One turn."""
    check_turn(1, (await agent().run(task="Hello autogen")).messages[-1].content)


@flow("streamed", "model_client_stream")
async def streamed():
    """Pieces of a text."""
    events = [each async for each in agent(model_client_stream=True).run_stream(task="Hello stream")]
    pieces = [each.content for each in events if isinstance(each, ModelClientStreamingChunkEvent)]
    check(pieces, events)
    check_turn(1, "".join(pieces))


@flow("streamed", "functions in a stream")
async def streamed_functions():
    """Calls that the client puts together out of a stream."""
    one = agent(tools=[get_weather], model_client_stream=True, reflect_on_tool_use=True, max_tool_iterations=3)
    text = (await one.run(task=TWO_ROUNDS)).messages[-1].content
    check("sun in Rome" in text, text)


@flow("tools", "two rounds and parallel")
async def functions():
    """Functions that the agent runs."""
    for words in (TWO_ROUNDS, PARALLEL):
        one = agent(tools=[get_weather], reflect_on_tool_use=True, max_tool_iterations=3)
        text = (await one.run(task=words)).messages[-1].content
        check("sun in Rome" in text, text)


@flow("structured", "output_content_type")
async def structured():
    """A typed answer."""
    answer = (await agent(output_content_type=Person).run(task="Who is it?")).messages[-1].content
    check(isinstance(answer, Person), answer)


@flow("history", "an assistant that is run on")
async def resent():
    """A conversation whose whole history is sent in each turn."""
    one = agent()
    for number, words in enumerate(questions("an assistant that is run on"), 1):
        check_turn(number, (await one.run(task=words)).messages[-1].content)


@flow("plain", "RoundRobinGroupChat")
async def round_robin():
    """Assistants in turn."""
    team = RoundRobinGroupChat([agent("writer"), agent("critic")], termination_condition=MaxMessageTermination(4))
    result = await team.run(task="Write a line.")
    check([each.source for each in result.messages[1:]] == ["writer", "critic", "writer"], result)


@flow("plain", "SelectorGroupChat: a system message alone asks for the next speaker")
async def selector():
    """A model that reads the conversation in one system message chooses."""
    team = SelectorGroupChat(
        [agent("writer"), agent("critic")],
        model_client=client(),
        termination_condition=MaxMessageTermination(4),
        selector_prompt="{roles}\n{history}\nChoose one of {participants}.",
        allow_repeated_speaker=True,
    )
    result = await team.run(task="Write a line.")
    check(len(result.messages) == 4, result)


@flow("plain", "Swarm with a hand-off")
async def swarm():
    """A function that hands over."""
    speakers = [agent("writer", handoffs=["critic"]), agent("critic")]
    team = Swarm(speakers, termination_condition=MaxMessageTermination(5))
    result = await team.run(task="Use transfer_to_critic({}).")
    check(result.messages[-1].source == "critic", result)


@flow("structured", "MagenticOneGroupChat keeps a ledger")
async def magentic():
    """An orchestrator asks the model for JSON about the state of the work."""
    team = MagenticOneGroupChat([agent("writer")], model_client=client(), max_turns=2)
    results = [each async for each in team.run_stream(task="Write a line.")]
    check(isinstance(results[-1], TaskResult), results[-1])


@flow("plain", "create with a list that ends with the assistant or a system message")
async def other_ends():
    """The client of the model alone."""
    for last in (AssistantMessage(content="Once upon", source="helper"), SystemMessage(content="Go on.")):
        answer = await client().create([UserMessage(content="Write.", source="user"), last])
        check(answer.content, answer)


@flow("knowledge", "an agent named as the model")
async def knowledge_by_name():
    """Knowledge behind the name of a model, beside functions of the program."""
    one = AssistantAgent("reader", client(KNOWLEDGE_AGENT), tools=[get_weather])
    text = (await one.run(task=KNOWLEDGE_QUESTION)).messages[-1].content
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@flow("images", "MultiModalMessage")
async def images():
    """A picture in a message."""
    picture = Image.from_base64(base64.b64encode(base64.b64decode(PNG)).decode())
    message = MultiModalMessage(content=["What is it?", picture], source="user")
    text = (await agent().run(task=message)).messages[-1].content
    check("1 image" in text, text)


@flow("errors", "unknown model")
async def unknown_model():
    """An error that names the model."""
    with refused("no-such-model"):
        await client("no-such-model").create([UserMessage(content="Hello", source="user")])


@flow("options", "temperature, seed and user")
async def options():
    """Options of the model."""
    one = client(temperature=0.2, seed=7, user="ann", max_tokens=60)
    answer = await one.create([UserMessage(content="Hello", source="user")])
    check(answer.usage.prompt_tokens > 0, answer)


run()
