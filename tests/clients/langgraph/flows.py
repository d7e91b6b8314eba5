"""Flows of LangGraph: prebuilt agents, graphs of one's own, checkpoints, and lists that end with the assistant."""

from operator import itemgetter

from flow_kit import (
    CODE_WORD,
    FILE_SEARCH,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG_URL,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    get_weather,
    modes,
    questions,
    refused,
    run,
)
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def model(mode: str = "chat", **options) -> ChatOpenAI:
    """Return the model over one of the APIs."""
    return ChatOpenAI(model=MODEL, max_retries=0, use_responses_api=mode == "responses", **options)


def said(state: dict) -> str:
    """Return the text of the newest message."""
    return state["messages"][-1].text


def asked(text: str) -> dict:
    """Return a state with one message."""
    return {"messages": [HumanMessage(text)]}


@modes("plain", "create_agent")
def plain(mode: str):
    """One turn."""
    check_turn(1, said(create_agent(model(mode), system_prompt="Be brief.").invoke(asked("Hello graph"))))


@modes("streamed", "messages and updates")
def streamed(mode: str):
    """Pieces of a text and steps of the graph."""
    agent = create_agent(model(mode), tools=[get_weather])
    pieces, steps = [], []
    for kind, part in agent.stream(asked(TWO_ROUNDS), stream_mode=["messages", "updates"]):
        (pieces if kind == "messages" else steps).append(part)
    check("sun in Rome" in "".join(piece.text for piece, _ in pieces if piece.type == "AIMessageChunk"), pieces)
    check(sum("tools" in step for step in steps) == 2, steps)


@modes("tools", "create_agent, two rounds and parallel")
def functions(mode: str):
    """Functions that the agent runs."""
    agent = create_agent(model(mode), tools=[get_weather])
    for words in (TWO_ROUNDS, PARALLEL):
        text = said(agent.invoke(asked(words)))
        check("sun in Rome" in text, text)


@flow("tools", "create_react_agent with response_format")
def react_with_form():
    """A second call whose list ends with the assistant's answer gives the typed one."""
    agent = create_react_agent(model(), [get_weather], response_format=Person)
    state = agent.invoke(asked(TWO_ROUNDS))
    check(state["structured_response"].name, state["structured_response"])


@modes("structured", "ProviderStrategy and ToolStrategy")
def structured(mode: str):
    """A typed answer, by the provider and by a function."""
    for strategy in (ProviderStrategy, ToolStrategy):
        agent = create_agent(model(mode), tools=[get_weather], response_format=strategy(Person))
        check(agent.invoke(asked("Who is it?"))["structured_response"].name, strategy)


@modes("history", "checkpointer")
def resent(mode: str):
    """A thread whose whole history is sent in each turn."""
    agent = create_agent(model(mode), checkpointer=InMemorySaver())
    for number, words in enumerate(questions(f"{mode}, checkpointer"), 1):
        check_turn(number, said(agent.invoke(asked(words), {"configurable": {"thread_id": "one"}})))


@modes("plain", "time travel")
def forked(mode: str):
    """An earlier state of a thread goes on in another way."""
    agent = create_agent(model(mode), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "one"}}
    for words in ("First.", "Second."):
        agent.invoke(asked(words), thread)
    earlier = next(each for each in agent.get_state_history(thread) if len(each.values["messages"]) == 2)
    text = said(agent.invoke(asked("Another second."), earlier.config))
    check_turn(2, text)
    check("Another second." in text, text)


@modes("plain", "two nodes, the second sees a list that ends with the assistant")
def ends_with_the_assistant(mode: str):
    """A second node calls the model behind the first one's answer."""

    def node(state: MessagesState) -> dict:
        return {"messages": [model(mode).invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("draft", node)
    graph.add_node("review", node)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "review")
    graph.add_edge("review", END)
    messages = graph.compile().invoke(asked("Write."))["messages"]
    check([each.type for each in messages] == ["human", "ai", "ai"], messages)
    check(messages[-1].text, messages)


@modes("plain", "a supervisor's system message stands last")
def ends_with_a_system_message(mode: str):
    """A system message behind the answer tells what to do next."""
    answer = model(mode).invoke(
        [HumanMessage("Write."), AIMessage("Written."), SystemMessage("Now say who goes on: writer or reviewer.")]
    )
    check(answer.text, answer)


@flow("plain", "a named assistant among several")
def named():
    """Messages that tell which agent said them."""
    answer = model().invoke([HumanMessage("Write.", name="ann"), AIMessage("Written.", name="writer")])
    check(answer.text, answer)


@flow("knowledge", "file_search in an agent")
def knowledge():
    """Knowledge that the server searches."""
    agent = create_agent(model("responses").bind(tools=[FILE_SEARCH]))
    state = agent.invoke(asked(KNOWLEDGE_QUESTION))
    check(CODE_WORD in said(state), state)
    content = state["messages"][-1].content
    check(any(part.get("annotations") for part in content if part["type"] == "text"), content)


@modes("knowledge", "an agent named as the model")
def knowledge_by_name(mode: str):
    """Knowledge behind the name of a model, beside functions of the program."""
    one = ChatOpenAI(model=KNOWLEDGE_AGENT, max_retries=0, use_responses_api=mode == "responses")
    text = said(create_agent(one, tools=[get_weather]).invoke(asked(KNOWLEDGE_QUESTION)))
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@modes("images", "image_url")
def images(mode: str):
    """A picture in a message."""
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    text = said(create_agent(model(mode)).invoke({"messages": [HumanMessage(parts)]}))
    check("1 image" in text, text)


@modes("errors", "unknown model")
def unknown_model(mode: str):
    """An error that names the model."""
    one = ChatOpenAI(model="no-such-model", max_retries=0, use_responses_api=mode == "responses")
    with refused("no-such-model"):
        create_agent(one).invoke(asked("Hello"))


@modes("options", "temperature, max_tokens, seed")
def options(mode: str):
    """Options of the model reach it."""
    extra = {} if mode == "responses" else {"seed": 7}
    answer = create_agent(model(mode, temperature=0.2, max_tokens=50, **extra)).invoke(asked("Hello"))
    check(itemgetter("input_tokens")(answer["messages"][-1].usage_metadata) > 0, answer)


run()
