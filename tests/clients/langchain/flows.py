"""Flows of LangChain's ChatOpenAI in its default mode and over Responses, and of its agents."""

import base64

import flow_kit
from flow_kit import (
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_SEARCH,
    FILE_TEXT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PERSON_SCHEMA,
    PNG,
    PNG_URL,
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
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

MODES = {
    "chat": {},
    "responses": {"use_responses_api": True},
    "responses/v1": {"use_responses_api": True, "output_version": "responses/v1"},
    "v1": {"use_responses_api": True, "output_version": "v1"},
}
get_weather = tool(flow_kit.get_weather)


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def chat(mode: str, **options) -> ChatOpenAI:
    """Return a model in a mode."""
    return ChatOpenAI(model=MODEL, max_retries=0, **MODES[mode], **options)


@modes("plain", "invoke, batch", *MODES)
def plain(mode: str):
    """Turns one by one and side by side."""
    answer = chat(mode).invoke("Hello chain")
    check_turn(1, answer.text)
    check(answer.usage_metadata["total_tokens"] > 0, answer)
    for each in chat(mode).batch(["Hello one", "Hello two"]):
        check_turn(1, each.text)


@modes("plain", "ainvoke, prompt template, parser")
async def plain_async(mode: str):
    """A chain of three."""
    prompt = ChatPromptTemplate.from_messages([("system", "Be {how}."), ("human", "{asked}")])
    chain = prompt | chat(mode) | StrOutputParser()
    check_turn(1, await chain.ainvoke({"how": "kind", "asked": "Hello template"}))


@modes("streamed", "stream, astream", *MODES)
async def streamed(mode: str):
    """Pieces that add up to a message."""
    whole = None
    for piece in chat(mode).stream("Hello stream"):
        whole = piece if whole is None else whole + piece
    check_turn(1, whole.text)
    text = "".join([piece.text async for piece in chat(mode, stream_usage=True).astream("Hello async stream")])
    check_turn(1, text)


@modes("streamed", "astream_events", *MODES)
async def events(mode: str):
    """Events of a chain."""
    kinds = [event["event"] async for event in chat(mode).astream_events("Hello events", version="v2")]
    check(kinds.count("on_chat_model_stream") > 1 and kinds[-1] == "on_chat_model_end", kinds)


@modes("streamed", "stream with functions", *MODES)
def streamed_tools(mode: str):
    """Calls, piece by piece."""
    whole = None
    for piece in chat(mode).bind_tools([get_weather]).stream(PARALLEL):
        whole = piece if whole is None else whole + piece
    check([call["args"]["city"] for call in whole.tool_calls] == ["Paris", "Rome"], whole)


@modes("structured", "with_structured_output: json_schema, function_calling, json_mode", *MODES)
def structured(mode: str):
    """Each method, with a class and with a schema."""
    for method in ("json_schema", "function_calling", "json_mode"):
        found = chat(mode).with_structured_output(Person, method=method).invoke(f"Who, by {method}, as JSON?")
        check(isinstance(found, Person), method, found)
    schema = {"title": "person", **PERSON_SCHEMA}
    raw = chat(mode).with_structured_output(schema, include_raw=True, strict=True).invoke("Who, raw?")
    check(raw["parsing_error"] is None and raw["parsed"]["name"], raw)


@modes("structured", "with_structured_output streamed")
def structured_stream(mode: str):
    """Partial objects."""
    pieces = list(chat(mode).with_structured_output(Person).stream("Who, streamed?"))
    check(isinstance(pieces[-1], Person), pieces)


@modes("tools", "bind_tools, two rounds, then a second turn", *MODES)
def tools(mode: str):
    """The loop by hand."""
    model = chat(mode).bind_tools([get_weather])
    messages = [HumanMessage(TWO_ROUNDS)]
    rounds = 0
    while (answer := model.invoke(messages)).tool_calls:
        rounds += 1
        messages += [answer, *(get_weather.invoke(call) for call in answer.tool_calls)]
    check(rounds == 2 and "sun in Rome" in answer.text, rounds, answer)
    messages += [answer, HumanMessage("Thank you")]
    check_turn(2, model.invoke(messages).text)


@modes("tools", "tool_choice, strict, parallel_tool_calls")
def choice(mode: str):
    """Demanded calls."""
    for wanted in ("any", "get_weather", "required"):
        answer = chat(mode).bind_tools([get_weather], tool_choice=wanted).invoke(f"Anything {wanted}")
        check([call["name"] for call in answer.tool_calls] == ["get_weather"], wanted, answer)
    model = chat(mode).bind_tools([get_weather], strict=True, parallel_tool_calls=False)
    check(model.invoke(PARALLEL).tool_calls)


@modes("tools", "create_agent with memory", *MODES)
def agent(mode: str):
    """An agent that runs functions, and remembers."""
    one = create_agent(chat(mode), [get_weather], system_prompt="Be kind.", checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    told = one.invoke({"messages": [("user", TWO_ROUNDS)]}, thread)["messages"]
    check("sun in Rome" in told[-1].text, told)
    told = one.invoke({"messages": [("user", PARALLEL)]}, thread)["messages"]
    check("rain in Paris" in told[-1].text, told)
    pieces = list(one.stream({"messages": [("user", "Thank you")]}, thread, stream_mode="messages"))
    check_turn(3, "".join(piece.text for piece, _ in pieces))


@modes("tools", "create_agent with response_format")
def agent_structured(mode: str):
    """An agent whose answer has a form."""
    one = create_agent(chat(mode), [get_weather], response_format=Person)
    check(isinstance(one.invoke({"messages": [("user", PARALLEL)]})["structured_response"], Person))


def sources(answer: AIMessage) -> list[str]:
    """Return the names of the documents that an answer cites, from its standard content."""
    notes = [note for block in answer.content_blocks for note in block.get("annotations", [])]
    return [note.get("title") or note.get("extras", {}).get("filename") or note["value"]["filename"] for note in notes]


@modes("knowledge", "file_search", "responses", "responses/v1", "v1")
def knowledge(mode: str):
    """A search on our side and the citation."""
    answer = chat(mode).bind_tools([FILE_SEARCH, get_weather]).invoke(KNOWLEDGE_QUESTION)
    check(CODE_WORD in answer.text and not answer.tool_calls, answer)
    check(sources(answer) == ["handbook.md"], answer.content_blocks)
    messages = [HumanMessage(KNOWLEDGE_QUESTION), answer, HumanMessage("And now?")]
    check("And now?" in chat(mode).bind_tools([FILE_SEARCH]).invoke(messages).text)


@flow("knowledge", "chat, file_search through extra_body")
def knowledge_chat():
    """In the default mode the client converts tools, and drops annotations."""
    answer = chat("chat", extra_body={"tools": [FILE_SEARCH]}).invoke(KNOWLEDGE_QUESTION)
    check(f"{CODE_WORD} [1]" in answer.text, answer)


@modes("knowledge", "file_search streamed", "responses", "v1")
def knowledge_stream(mode: str):
    """The same in pieces."""
    whole = None
    for piece in chat(mode).bind_tools([FILE_SEARCH]).stream(KNOWLEDGE_QUESTION):
        whole = piece if whole is None else whole + piece
    check(CODE_WORD in whole.text and sources(whole) == ["handbook.md"], whole.content_blocks)


@modes("history", "messages", *MODES)
def history(mode: str):
    """Five turns, all messages each time."""
    messages = [SystemMessage("Be kind.")]
    for number, question in enumerate(questions(f"{mode}, messages"), 1):
        messages.append(HumanMessage(question))
        answer = chat(mode).invoke(messages)
        check_turn(number, answer.text)
        messages.append(answer)


@modes("history", "streamed, template with placeholder", *MODES)
def history_streamed(mode: str):
    """Five turns through a template, from pieces."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be kind."), MessagesPlaceholder("past"), ("human", "{asked}")]
    )
    past = []
    for question in questions(f"{mode}, streamed, template with placeholder"):
        whole = None
        for piece in (prompt | chat(mode)).stream({"past": past, "asked": question}):
            whole = piece if whole is None else whole + piece
        past += [HumanMessage(question), whole]


@flow("state", "responses, use_previous_response_id")
def previous_response():
    """The client sends what is new and names the response before."""
    model = chat("responses", use_previous_response_id=True)
    messages = [HumanMessage("First")]
    for number in range(1, 4):
        answer = model.invoke(messages)
        check_turn(number, answer.text)
        messages += [answer, HumanMessage(f"Turn after {number}")]
    answer = chat("responses").invoke("By id", previous_response_id=answer.response_metadata["id"])
    check_turn(4, answer.text)


@modes("images", "image parts", *MODES)
def image(mode: str):
    """OpenAI's part and LangChain's own."""
    for part in (
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
    ):
        answer = chat(mode).invoke([HumanMessage([{"type": "text", "text": "What?"}, part])])
        check("I see 1 image" in answer.text, answer)


@modes("files", "file part", "chat", "responses", "v1")
def file(mode: str):
    """A document beside a text."""
    coded = base64.b64encode(FILE_TEXT.encode()).decode()
    part = {"type": "file", "base64": coded, "mime_type": "text/markdown", "filename": "inventory.md"}
    question = {"type": "text", "text": "Which code word does the inventory name?"}
    check(FILE_CODE_WORD in chat(mode).invoke([HumanMessage([part, question])]).text)


@modes("errors", "unknown model")
def unknown_model(mode: str):
    """The message lists those that there are."""
    with refused("no-such-model", MODEL):
        ChatOpenAI(model="no-such-model", max_retries=0, **MODES[mode]).invoke("x")


@modes("errors", "wrong key, too large, unsupported field")
def refusals(mode: str):
    """What the user of the chain reads."""
    with refused("401", "key"):
        chat(mode, api_key="sk-wrong").invoke("x")
    with refused("413", "33554432"):
        chat(mode).invoke(TOO_LARGE)
    with refused("seed"):
        chat(mode, extra_body={"seed": "x"}).invoke("x")


@flow("errors", "chat, n, logprobs, logit_bias, embeddings")
def refusals_chat():
    """Fields of Chat Completions that are not supported, and one that goes on to the provider."""
    with refused("n:"):
        chat("chat", n=9).invoke("x")
    with refused("logprobs"):
        chat("chat", top_logprobs=2).invoke("x")
    check(chat("chat", logit_bias={1: 1}).invoke("x").text)
    with refused("404", "embeddings"):
        OpenAIEmbeddings(max_retries=0, check_embedding_ctx_length=False).embed_query("x")


@modes("options", "limits, metadata, reasoning")
def options(mode: str):
    """Settings that are taken."""
    model = chat(mode, temperature=0.1, max_tokens=300, top_p=0.5, metadata={"a": "b"}, store=True, verbosity="low")
    check_turn(1, model.invoke("Think: about options").text)
    check_turn(1, chat(mode, reasoning_effort="low", max_completion_tokens=200).invoke("Think: twice").text)
    if mode == "chat":
        check_turn(1, chat(mode, seed=1, stop=["END"], frequency_penalty=0.1, presence_penalty=0.1).invoke("x").text)


@flow("options", "responses, reasoning summaries resent")
def reasoning():
    """Reasoning items of the first turn come back in the second."""
    for version in ("responses/v1", "v1"):
        model = chat(version, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"])
        messages = [HumanMessage("Think: first")]
        answer = model.invoke(messages)
        check_turn(2, model.invoke([*messages, answer, HumanMessage("Think: second")]).text)


@modes("options", "tool messages with parts and errors")
def tool_message_parts(mode: str):
    """Results as lists of parts."""
    model = chat(mode).bind_tools([get_weather])
    messages = [HumanMessage(PARALLEL)]
    answer = model.invoke(messages)
    results = [
        ToolMessage([{"type": "text", "text": "fog"}], tool_call_id=call["id"], status="error")
        for call in answer.tool_calls
    ]
    check("fog" in model.invoke([*messages, answer, *results]).text)


run()
