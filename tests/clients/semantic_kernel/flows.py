"""Flows of Semantic Kernel: agents, plugins, orchestrations in which agents speak behind one another."""

import flow_kit
from flow_kit import (
    CODE_WORD,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_BASE_ID,
    KNOWLEDGE_QUESTION,
    MODEL,
    PNG,
    check,
    check_turn,
    flow,
    questions,
    refused,
    run,
)
from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel.agents import (
    ChatCompletionAgent,
    ConcurrentOrchestration,
    GroupChatOrchestration,
    OpenAIResponsesAgent,
    RoundRobinGroupChatManager,
    SequentialOrchestration,
)
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory, ChatMessageContent, ImageContent, TextContent
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.functions import KernelArguments, kernel_function

TWO_ROUNDS = 'Use Weather-get_weather({"city": "Paris"}) then Weather-get_weather({"city": "Rome"}).'


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class Weather:
    """What agents may call."""

    @kernel_function(name="get_weather")
    def get_weather(self, city: str) -> str:
        """Return the weather of a city."""
        return flow_kit.get_weather(city)


def service(name: str = MODEL) -> OpenAIChatCompletion:
    """Return the service of Chat Completions."""
    return OpenAIChatCompletion(ai_model_id=name, async_client=AsyncOpenAI(max_retries=0))


def agent(name: str = "helper", **options) -> ChatCompletionAgent:
    """Return an agent over Chat Completions."""
    return ChatCompletionAgent(service=service(), name=name, instructions="Be brief.", **options)


@flow("plain", "get_response")
async def plain():
    """One turn."""
    check_turn(1, str((await agent().get_response(messages="Hello kernel")).content))


@flow("streamed", "invoke_stream")
async def streamed():
    """Pieces of a text."""
    pieces = [str(each.content) async for each in agent().invoke_stream(messages="Hello stream")]
    check(len(pieces) > 1, pieces)
    check_turn(1, "".join(pieces))


@flow("tools", "plugins, two rounds")
async def functions():
    """Functions that the kernel runs."""
    text = str((await agent(plugins=[Weather()]).get_response(messages=TWO_ROUNDS)).content)
    check("sun in Rome" in text, text)


@flow("streamed", "plugins in a stream")
async def streamed_functions():
    """Functions whose calls come in a stream."""
    pieces = [str(each.content) async for each in agent(plugins=[Weather()]).invoke_stream(messages=TWO_ROUNDS)]
    check("sun in Rome" in "".join(pieces), pieces)


@flow("structured", "response_format")
async def structured():
    """A typed answer."""
    given = KernelArguments(settings=OpenAIChatPromptExecutionSettings(response_format=Person))
    text = str((await agent(arguments=given).get_response(messages="Who is it?")).content)
    check(Person.model_validate_json(text), text)


@flow("history", "a thread")
async def resent():
    """A conversation whose whole history is sent in each turn."""
    thread = None
    for number, words in enumerate(questions("a thread"), 1):
        answer = await agent().get_response(messages=words, thread=thread)
        thread = answer.thread
        check_turn(number, str(answer.content))


@flow("plain", "a history that ends with the assistant")
async def ends_with_the_assistant():
    """The service alone, asked behind an answer."""
    history = ChatHistory()
    history.add_user_message("Write.")
    history.add_assistant_message("Once upon a")
    answer = await service().get_chat_message_content(history, OpenAIChatPromptExecutionSettings())
    check(str(answer), answer)


@flow("plain", "a history with a system message last, and one with nothing else")
async def ends_with_a_system_message():
    """The service alone, told what to do by the system."""
    for words in ((), ("Write.",)):
        history = ChatHistory()
        for each in words:
            history.add_user_message(each)
        history.add_system_message("Say something kind.")
        check(str(await service().get_chat_message_content(history, OpenAIChatPromptExecutionSettings())))


async def orchestrated(orchestration, task: str) -> str:
    """Run agents together and return what comes of it."""
    runtime = InProcessRuntime()
    runtime.start()
    result = await orchestration.invoke(task=task, runtime=runtime)
    found = str(await result.get(timeout=60))
    await runtime.stop_when_idle()
    return found


@flow("plain", "GroupChatOrchestration")
async def group_chat():
    """Agents that see one another's answers as the assistant's."""
    found = await orchestrated(
        GroupChatOrchestration(
            members=[agent("writer", description="writes"), agent("critic", description="judges")],
            manager=RoundRobinGroupChatManager(max_rounds=3),
        ),
        "Write a line.",
    )
    check(found, found)


@flow("plain", "SequentialOrchestration and ConcurrentOrchestration")
async def other_orchestrations():
    """One behind the other, and all at once."""
    for kind in (SequentialOrchestration, ConcurrentOrchestration):
        check(await orchestrated(kind(members=[agent("writer"), agent("critic")]), "Write a line."), kind)


@flow("state", "OpenAIResponsesAgent")
async def kept():
    """A thread that the server keeps."""
    one = OpenAIResponsesAgent(
        ai_model_id=MODEL, client=AsyncOpenAI(max_retries=0), name="helper", instructions="Be brief."
    )
    thread = None
    for number in (1, 2):
        answer = await one.get_response(messages=f"Question {number}.", thread=thread)
        thread = answer.thread
        check_turn(number, str(answer.content))


@flow("knowledge", "OpenAIResponsesAgent with file search")
async def knowledge():
    """Knowledge that the server searches."""
    tool = OpenAIResponsesAgent.configure_file_search_tool(vector_store_ids=[KNOWLEDGE_BASE_ID])
    one = OpenAIResponsesAgent(
        ai_model_id=MODEL, client=AsyncOpenAI(max_retries=0), name="reader", instructions="Cite.", tools=[tool]
    )
    text = str((await one.get_response(messages=KNOWLEDGE_QUESTION)).content)
    check(CODE_WORD in text, text)


@flow("knowledge", "an agent named as the model")
async def knowledge_by_name():
    """Knowledge behind the name of a model, beside plugins of the program."""
    one = ChatCompletionAgent(service=service(KNOWLEDGE_AGENT), name="reader", plugins=[Weather()])
    text = str((await one.get_response(messages=KNOWLEDGE_QUESTION)).content)
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@flow("images", "ImageContent")
async def images():
    """A picture in a message."""
    picture = ImageContent(data=PNG, data_format="base64", mime_type="image/png")
    message = ChatMessageContent(role=AuthorRole.USER, items=[TextContent(text="What is it?"), picture])
    text = str((await agent().get_response(messages=message)).content)
    check("1 image" in text, text)


@flow("errors", "unknown model")
async def unknown_model():
    """An error that names the model."""
    history = ChatHistory()
    history.add_user_message("Hello")
    with refused("no-such-model"):
        await service("no-such-model").get_chat_message_content(history, OpenAIChatPromptExecutionSettings())


@flow("options", "temperature, penalties, seed and user")
async def options():
    """Options of the model."""
    history = ChatHistory()
    history.add_user_message("Hello")
    settings = OpenAIChatPromptExecutionSettings(
        temperature=0.3, frequency_penalty=0.1, presence_penalty=0.1, seed=7, user="ann", max_tokens=60, logit_bias={}
    )
    check_turn(1, str(await service().get_chat_message_content(history, settings)))


run()
