"""Flows of CrewAI: its language model, agents alone, and crews."""

import flow_kit
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    check,
    check_turn,
    flow,
    questions,
    refused,
    run,
)
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool("get_weather")
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return flow_kit.get_weather(city)


def llm(name: str = MODEL, **options) -> LLM:
    """Return the language model."""
    return LLM(model=f"openai/{name}", base_url=BASE_URL, api_key=API_KEY, **options)


def agent(role: str = "helper", **options) -> Agent:
    """Return an agent that gives up soon."""
    return Agent(role=role, goal="help", backstory="You are kind.", llm=llm(), max_iter=4, max_retry_limit=0, **options)


def task(words: str, one: Agent, **options) -> Task:
    """Return a task for an agent."""
    return Task(description=words, expected_output="A short text.", agent=one, **options)


@flow("plain", "LLM.call")
def plain():
    """One turn."""
    check_turn(1, llm().call("Hello crew"))


@flow("history", "LLM.call with messages")
def resent():
    """A history that the program keeps."""
    messages = []
    for number, words in enumerate(questions("LLM.call with messages"), 1):
        messages.append({"role": "user", "content": words})
        text = llm().call(messages)
        check_turn(number, text)
        messages.append({"role": "assistant", "content": text})


@flow("streamed", "LLM with stream")
def streamed():
    """An answer that the client puts together out of a stream."""
    check_turn(1, llm(stream=True).call("Hello stream"))


@flow("plain", "LLM.call with a list that ends with the assistant")
def ends_with_the_assistant():
    """The model goes on behind its own words."""
    check(llm().call([{"role": "user", "content": "Write."}, {"role": "assistant", "content": "Once upon a"}]))


@flow("structured", "LLM.call with response_format")
def structured():
    """A typed answer of the model alone."""
    found = llm(response_format=Person).call("Who is it?")
    check(found if isinstance(found, Person) else Person.model_validate_json(str(found)), found)


@flow("plain", "a crew of one")
def crew():
    """An agent with a task."""
    one = agent()
    check(Crew(agents=[one], tasks=[task("Say hello.", one)]).kickoff().raw)


@flow("plain", "two tasks, the second with what came of the first")
def two_tasks():
    """Agents one behind the other."""
    writer, critic = agent("writer"), agent("critic")
    first = task("Write a line.", writer)
    second = task("Judge the line.", critic, context=[first])
    made = Crew(agents=[writer, critic], tasks=[first, second]).kickoff()
    check(len(made.tasks_output) == 2, made)


@flow("structured", "output_pydantic")
def typed():
    """A task with a typed result."""
    one = agent()
    made = Crew(agents=[one], tasks=[task("Who is it?", one, output_pydantic=Person)]).kickoff()
    check(isinstance(made.pydantic, Person), made)


@flow("tools", "an agent with a tool")
def functions():
    """A function that the agent runs."""
    one = agent(tools=[get_weather])
    text = Crew(agents=[one], tasks=[task('Use get_weather({"city": "Paris"}).', one)]).kickoff().raw
    check("rain in Paris" in text, text)


@flow("knowledge", "an agent named as the model")
def knowledge_by_name():
    """Knowledge behind the name of a model."""
    text = llm(KNOWLEDGE_AGENT).call(KNOWLEDGE_QUESTION)
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@flow("plain", "Agent.kickoff")
def alone():
    """An agent without a crew."""
    check(agent().kickoff("Say hello.").raw)


@flow("errors", "unknown model")
def unknown_model():
    """An error that names the model."""
    with refused("no-such-model"):
        llm("no-such-model").call("Hello")


@flow("options", "temperature, seed and stop")
def options():
    """Options of the model."""
    check_turn(1, llm(temperature=0.2, seed=7, stop=["###"], max_tokens=60).call("Hello"))


run()
