"""Flows of LlamaIndex' models over Chat Completions and Responses, and of its agents and chat engines."""

import base64

import flow_kit
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_SEARCH,
    FILE_TEXT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG,
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
from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, DocumentBlock, ImageBlock, TextBlock
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

get_weather = FunctionTool.from_defaults(flow_kit.get_weather)
PERSON = PromptTemplate("Who is {who}?")


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def llm(mode: str, **options):
    """Return a model in a mode."""
    given = {"model": MODEL, "api_base": BASE_URL, "api_key": API_KEY, "max_retries": 0} | options
    if mode == "responses":
        # the client's own default is store=False, with which nothing is recognised
        return OpenAIResponses(**({"context_window": 100_000, "store": True} | given))
    return OpenAILike(is_chat_model=True, is_function_calling_model=True, context_window=100_000, **given)


def user(text: str) -> ChatMessage:
    """Return a message of the user."""
    return ChatMessage(role="user", content=text)


@modes("plain", "chat, complete, achat")
async def plain(mode: str):
    """Turns in all three words."""
    check_turn(1, llm(mode).chat([ChatMessage(role="system", content="Be kind."), user("Hello llama")]).message.content)
    check_turn(1, llm(mode).complete("Hello completion").text)
    check_turn(1, (await llm(mode).achat([user("Hello async llama")])).message.content)


@modes("streamed", "stream_chat, astream_chat, stream_complete")
async def streamed(mode: str):
    """Pieces."""
    check_turn(1, "".join(piece.delta or "" for piece in llm(mode).stream_chat([user("Hello stream")])))
    pieces = await llm(mode).astream_chat([user("Hello async stream")])
    check_turn(1, "".join([piece.delta or "" async for piece in pieces]))
    check_turn(1, "".join(piece.delta or "" for piece in llm(mode).stream_complete("Hello stream complete")))


@modes("streamed", "stream_chat_with_tools")
def streamed_tools(mode: str):
    """Calls, piece by piece."""
    model = llm(mode)
    *_, last = model.stream_chat_with_tools([get_weather], user_msg=PARALLEL, allow_parallel_tool_calls=True)
    calls = model.get_tool_calls_from_response(last)
    check([call.tool_kwargs["city"] for call in calls] == ["Paris", "Rome"], calls)


@modes("structured", "structured_predict, as_structured_llm")
async def structured(mode: str):
    """A class as the form of the answer."""
    check(isinstance(llm(mode).structured_predict(Person, PERSON, who="Ada"), Person))
    check(isinstance(await llm(mode).astructured_predict(Person, PERSON, who="Ada again"), Person))
    check(isinstance(llm(mode).as_structured_llm(Person).chat([user("Who?")]).raw, Person))


@flow("structured", "chat, should_use_structured_outputs")
def structured_schema():
    """By a schema instead of a function."""
    model = llm("chat", should_use_structured_outputs=True)
    check(isinstance(model.structured_predict(Person, PERSON, who="Grace"), Person))


@flow("structured", "chat, stream_structured_predict")
def structured_stream():
    """Partial objects; over Responses the client reads no calls back here, whatever the server."""
    asked = 'Use Person({"name": "Ada", "age": 36}).'  # the client demands no call while streaming
    pieces = list(llm("chat").stream_structured_predict(Person, PromptTemplate("{asked}"), asked=asked))
    check(isinstance(pieces[-1], Person) or pieces[-1].name == "Ada", pieces)


@modes("tools", "predict_and_call")
def predict_and_call(mode: str):
    """One call, run."""
    answer = llm(mode).predict_and_call([get_weather], 'Use get_weather({"city": "Rome"}).')
    check("sun in Rome" in str(answer), answer)


@modes("tools", "chat_with_tools, results resent")
def tool_loop(mode: str):
    """The loop by hand."""
    model = llm(mode)
    messages = [user(TWO_ROUNDS)]
    for _ in range(2):
        answer = model.chat_with_tools([get_weather], chat_history=messages)
        messages.append(answer.message)
        for call in model.get_tool_calls_from_response(answer):
            output = flow_kit.get_weather(**call.tool_kwargs)
            name = {"tool_call_id": call.tool_id, "name": call.tool_name}
            messages.append(ChatMessage(role="tool", content=output, additional_kwargs=name))
    answer = model.chat_with_tools([get_weather], chat_history=messages)
    check("sun in Rome" in answer.message.content, answer)


@modes("tools", "FunctionAgent with memory, two turns")
async def function_agent(mode: str):
    """An agent with a memory."""
    agent = FunctionAgent(llm=llm(mode), tools=[get_weather], system_prompt="Be kind.")
    memory = Memory.from_defaults(session_id="tools")
    check("sun in Rome" in str(await agent.run(TWO_ROUNDS, memory=memory)))
    check("rain in Paris" in str(await agent.run(PARALLEL, memory=memory)))
    handler = agent.run("Thank you", memory=memory)
    pieces = [event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)]
    check_turn(3, "".join(pieces))
    await handler


@modes("tools", "AgentWorkflow with handoff")
async def workflow(mode: str):
    """Two agents."""
    first = FunctionAgent(
        name="first", description="Begins.", llm=llm(mode), tools=[get_weather], can_handoff_to=["second"]
    )
    second = FunctionAgent(name="second", description="Ends.", llm=llm(mode), tools=[get_weather])
    flowing = AgentWorkflow(agents=[first, second], root_agent="first")
    answer = await flowing.run('Use handoff({"to_agent": "second", "reason": "why not"}).')
    check(answer.current_agent_name == "second", answer)


@modes("tools", "ReActAgent")
async def react(mode: str):
    """An agent without function calls: the client reads them out of the text."""
    agent = ReActAgent(llm=llm(mode), tools=[get_weather])
    check(str(await agent.run("Hello react")))


@flow("knowledge", "responses, built_in_tools file_search")
def knowledge():
    """A search on our side and the citation."""
    answer = llm("responses", built_in_tools=[FILE_SEARCH]).chat([user(KNOWLEDGE_QUESTION)])
    check(CODE_WORD in answer.message.content, answer)
    check([note.filename for note in answer.additional_kwargs["annotations"]] == ["handbook.md"], answer)
    pieces = list(llm("responses", built_in_tools=[FILE_SEARCH]).stream_chat([user(KNOWLEDGE_QUESTION)]))
    check(CODE_WORD in pieces[-1].message.content, pieces[-1])


@flow("knowledge", "chat, file_search through additional_kwargs")
def knowledge_chat():
    """The tools of the request as it is sent."""
    answer = llm("chat", additional_kwargs={"tools": [FILE_SEARCH]}).chat([user(KNOWLEDGE_QUESTION)])
    check(f"{CODE_WORD} [1]" in answer.message.content, answer)


@modes("history", "chat messages")
def history(mode: str):
    """Five turns, all messages each time."""
    messages = [ChatMessage(role="system", content="Be kind.")]
    for number, question in enumerate(questions(f"{mode}, chat messages"), 1):
        messages.append(user(question))
        answer = llm(mode).chat(messages)
        check_turn(number, answer.message.content)
        messages.append(answer.message)


@modes("history", "chat engine")
def chat_engine(mode: str):
    """Five turns of a chat engine, streamed."""
    memory = ChatMemoryBuffer.from_defaults(llm=llm(mode))
    engine = SimpleChatEngine.from_defaults(llm=llm(mode), memory=memory, system_prompt="Be kind.")
    for number, question in enumerate(questions(f"{mode}, chat engine"), 1):
        check_turn(number, "".join(engine.stream_chat(question).response_gen))


@modes("history", "FunctionAgent")
async def history_agent(mode: str):
    """Five turns of an agent with functions."""
    agent = FunctionAgent(llm=llm(mode), tools=[get_weather], system_prompt="Be kind.")
    memory = Memory.from_defaults(session_id=mode)
    for number, question in enumerate(questions(f"{mode}, FunctionAgent"), 1):
        check_turn(number, str(await agent.run(question, memory=memory)))


@flow("state", "responses, track_previous_responses")
def previous_response():
    """The client names the response before."""
    model = llm("responses", track_previous_responses=True)
    for number in range(1, 4):
        check_turn(number, model.chat([user(f"Turn of mine {number}")]).message.content)


@flow("state", "responses, store=False, three turns")
def unstored():
    """Nothing is kept: the client's default."""
    messages = []
    for number in range(1, 4):
        messages.append(user(f"Unstored {number}"))
        answer = llm("responses", store=False).chat(messages)
        check_turn(number, answer.message.content)
        messages.append(answer.message)


@modes("images", "ImageBlock")
def image(mode: str):
    """An image beside a text."""
    blocks = [TextBlock(text="What?"), ImageBlock(image=base64.b64decode(PNG), image_mimetype="image/png")]
    answer = llm(mode).chat([ChatMessage(role="user", blocks=blocks)])
    check("I see 1 image" in answer.message.content, answer)


@modes("files", "DocumentBlock")
def file(mode: str):
    """A document beside a text."""
    document = DocumentBlock(
        data=base64.b64encode(FILE_TEXT.encode()), title="inventory.md", document_mimetype="text/markdown"
    )
    question = TextBlock(text="Which code word does the inventory name?")
    answer = llm(mode).chat([ChatMessage(role="user", blocks=[document, question])])
    check(FILE_CODE_WORD in answer.message.content, answer)


@modes("errors", "unknown model, wrong key, too large, unsupported field")
def refusals(mode: str):
    """What the user reads."""
    with refused("401", "key"):
        llm(mode, api_key="sk-wrong").chat([user("x")])
    with refused("413", "33554432"):
        llm(mode).chat([user(TOO_LARGE)])
    with refused("seed"):
        llm(mode, additional_kwargs={"extra_body": {"seed": "x"}}).chat([user("x")])
    with refused("no-such-model", MODEL):
        llm(mode, model="no-such-model").chat([user("x")])


@flow("errors", "embeddings")
def embeddings():
    """A 404 that says what is not there."""
    with refused("404", "embeddings"):
        OpenAIEmbedding(api_base=BASE_URL, api_key=API_KEY, max_retries=0).get_text_embedding("x")


@modes("options", "limits, temperature, user")
def options(mode: str):
    """Settings that are taken."""
    limit = {"max_output_tokens": 300} if mode == "responses" else {"max_tokens": 300}
    model = llm(mode, temperature=0.3, additional_kwargs={"user": "u-1", "metadata": {"a": "b"}}, **limit)
    check_turn(1, model.chat([user("Think: about options")]).message.content)


run()
